// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"errors"
	"io"
	"sort"

	"google.golang.org/grpc"
	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
)

var listServices = &reflection.ServerReflectionRequest{
	MessageRequest: &reflection.ServerReflectionRequest_ListServices{},
}

// Both reflection versions have the same messages under different names; old versions of grpc-go know v1alpha only.
func (c *client) reflection(ctx context.Context, service string) (grpc.ClientStream, error) {
	kind := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	return c.connection.NewStream(ctx, kind, "/"+service+"/ServerReflectionInfo")
}

// An open reflection stream.
type reflectionStream struct {
	stream grpc.ClientStream
	err    error
}

func (c *client) openReflection(ctx context.Context, service string) *reflectionStream {
	stream, err := c.reflection(ctx, service)
	if err == nil {
		err = stream.SendMsg(listServices)
	}
	return &reflectionStream{stream, err}
}

func (c *reflectionStream) next() (outcome, error) {
	if c.err != nil {
		return failure(c.err), nil
	}
	err := c.stream.RecvMsg(&reflection.ServerReflectionResponse{})
	if err == io.EOF {
		return outcome{"code": "EOF"}, nil
	}
	return failure(err), nil
}

func (c *client) reflect(service string) (outcome, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stream, err := c.reflection(ctx, service)
	if err != nil {
		return nil, err
	}
	send := func(request *reflection.ServerReflectionRequest) (*reflection.ServerReflectionResponse, error) {
		response := &reflection.ServerReflectionResponse{}
		if err := stream.SendMsg(request); err != nil {
			return nil, err
		}
		return response, stream.RecvMsg(response)
	}
	names, files, err := listEverything(send)
	if err != nil {
		return nil, err
	}
	// Fails when a dependency is missing.
	if _, err := protodesc.NewFiles(files); err != nil {
		return nil, err
	}
	if err := stream.CloseSend(); err != nil {
		return nil, err
	}
	if err := stream.RecvMsg(&reflection.ServerReflectionResponse{}); err != io.EOF {
		return nil, errors.New("the stream ended with an error: " + err.Error())
	}
	return outcome{"services": names, "files": len(files.GetFile())}, nil
}

type reflectFunc = func(*reflection.ServerReflectionRequest) (*reflection.ServerReflectionResponse, error)

func listEverything(send reflectFunc) ([]string, *descriptorpb.FileDescriptorSet, error) {
	list, err := send(listServices)
	if err != nil {
		return nil, nil, err
	}
	names := []string{}
	known := map[string]bool{}
	set := &descriptorpb.FileDescriptorSet{}
	for _, service := range list.GetListServicesResponse().GetService() {
		names = append(names, service.GetName())
		response, err := send(&reflection.ServerReflectionRequest{
			MessageRequest: &reflection.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: service.GetName()},
		})
		if err != nil {
			return nil, nil, err
		}
		for _, bytes := range response.GetFileDescriptorResponse().GetFileDescriptorProto() {
			file := &descriptorpb.FileDescriptorProto{}
			if err := proto.Unmarshal(bytes, file); err != nil {
				return nil, nil, err
			}
			if !known[file.GetName()] {
				known[file.GetName()] = true
				set.File = append(set.File, file)
			}
		}
	}
	sort.Strings(names)
	return names, set, nil
}
