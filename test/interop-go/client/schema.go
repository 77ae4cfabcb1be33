// SPDX-License-Identifier: Apache-2.0
package main

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/emptypb"
)

// The proto files of the calls.
type schema struct {
	files *protoregistry.Files
}

func (s *schema) read(descriptors []byte) error {
	set := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(descriptors, set); err != nil {
		return err
	}
	files, err := protodesc.NewFiles(set)
	s.files = files
	return err
}

// Returns empty messages for an unknown RPC.
func (s *schema) findMessages(rpc string) (request, response proto.Message, err error) {
	service, name, _ := strings.Cut(strings.TrimPrefix(rpc, "/"), "/")
	found, err := s.files.FindDescriptorByName(protoreflect.FullName(service + "." + name))
	if err == protoregistry.NotFound {
		return &emptypb.Empty{}, &emptypb.Empty{}, nil
	}
	method, isMethod := found.(protoreflect.MethodDescriptor)
	if !isMethod {
		return nil, nil, fmt.Errorf("%s: %v", rpc, err)
	}
	return dynamicpb.NewMessage(method.Input()), dynamicpb.NewMessage(method.Output()), nil
}
