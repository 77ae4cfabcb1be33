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

// Both versions of reflection have the same messages under different names; old grpc-go knows only the first.
func (c *client) reflection(ctx context.Context, service string) (grpc.ClientStream, error) {
	kind := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	return c.connection.NewStream(ctx, kind, "/"+service+"/ServerReflectionInfo")
}

// A stream on which something was asked and more might be.
type conversation struct {
	stream grpc.ClientStream
	err    error
}

func (c *client) converse(ctx context.Context, service string) *conversation {
	stream, err := c.reflection(ctx, service)
	if err == nil {
		err = stream.SendMsg(listServices)
	}
	return &conversation{stream, err}
}

func (c *conversation) next() (outcome, error) {
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
	ask := func(request *reflection.ServerReflectionRequest) (*reflection.ServerReflectionResponse, error) {
		answer := &reflection.ServerReflectionResponse{}
		if err := stream.SendMsg(request); err != nil {
			return nil, err
		}
		return answer, stream.RecvMsg(answer)
	}
	names, files, err := everything(ask)
	if err != nil {
		return nil, err
	}
	// Whatever does not fit together is an error here.
	if _, err := protodesc.NewFiles(files); err != nil {
		return nil, err
	}
	if err := stream.CloseSend(); err != nil {
		return nil, err
	}
	if err := stream.RecvMsg(&reflection.ServerReflectionResponse{}); err != io.EOF {
		return nil, errors.New("the stream did not end well: " + err.Error())
	}
	return outcome{"services": names, "files": len(files.GetFile())}, nil
}

type asking = func(*reflection.ServerReflectionRequest) (*reflection.ServerReflectionResponse, error)

func everything(ask asking) ([]string, *descriptorpb.FileDescriptorSet, error) {
	list, err := ask(listServices)
	if err != nil {
		return nil, nil, err
	}
	names := []string{}
	known := map[string]bool{}
	set := &descriptorpb.FileDescriptorSet{}
	for _, service := range list.GetListServicesResponse().GetService() {
		names = append(names, service.GetName())
		answer, err := ask(&reflection.ServerReflectionRequest{
			MessageRequest: &reflection.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: service.GetName()},
		})
		if err != nil {
			return nil, nil, err
		}
		for _, bytes := range answer.GetFileDescriptorResponse().GetFileDescriptorProto() {
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
