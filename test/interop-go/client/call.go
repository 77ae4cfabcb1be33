// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

type callOrder struct {
	RPC       string          `json:"rpc"`
	Request   json.RawMessage `json:"request"`
	TimeoutNs int64           `json:"timeoutNs"`
	// Pairs; what belongs to a name that ends in -bin is base64.
	Metadata     []metadataPair `json:"metadata"`
	Gzip         bool           `json:"gzip"`
	WaitForReady bool           `json:"waitForReady"`
	Subtype      string         `json:"subtype"`
	// How often, one after the other, and by how many at the same time.
	Count    int `json:"count"`
	Parallel int `json:"parallel"`
	// Without the answer, which may be large.
	Quiet bool `json:"quiet"`
}

type metadataPair struct {
	Name  string `json:"name"`
	Value []byte `json:"value"`
}

func contextOf(o callOrder) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	if o.TimeoutNs != 0 {
		ctx, cancel = context.WithTimeout(context.Background(), time.Duration(o.TimeoutNs))
	}
	for _, pair := range o.Metadata {
		ctx = metadata.AppendToOutgoingContext(ctx, pair.Name, string(pair.Value))
	}
	return ctx, cancel
}

type tally struct {
	mutex sync.Mutex
	codes map[string]int
	last  outcome
}

func (t *tally) add(code string, result outcome) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.codes[code]++
	// The first failure says more than the last success.
	if t.last == nil || t.last["code"] == "OK" {
		t.last = result
	}
}

func (c *client) call(ctx context.Context, s *schema, o callOrder) (outcome, error) {
	t := &tally{codes: map[string]int{}}
	faults := make(chan error, max(1, o.Parallel))
	for range max(1, o.Parallel) {
		go func() { faults <- c.several(ctx, s, o, t) }()
	}
	for range max(1, o.Parallel) {
		if err := <-faults; err != nil {
			return nil, err
		}
	}
	t.last["codes"] = t.codes
	return t.last, nil
}

func (c *client) several(ctx context.Context, s *schema, o callOrder, t *tally) error {
	for range max(1, o.Count) {
		if err := c.once(ctx, s, o, t); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) once(ctx context.Context, s *schema, o callOrder, t *tally) error {
	request, answer, err := s.messagesOf(o.RPC)
	if err != nil {
		return err
	}
	if len(o.Request) > 0 {
		if err := protojson.Unmarshal(o.Request, request); err != nil {
			return err
		}
	}
	var header, trailer metadata.MD
	err = c.connection.Invoke(ctx, o.RPC, request, answer, append(optionsOf(o), grpc.Header(&header), grpc.Trailer(&trailer))...)
	told := status.Convert(err)
	result := outcome{
		"code":    told.Code().String(),
		"message": told.Message(),
		"header":  header,
		"trailer": trailer,
		"bytes":   proto.Size(answer),
	}
	if err == nil && !o.Quiet {
		text, err := (protojson.MarshalOptions{UseProtoNames: true}).Marshal(answer)
		if err != nil {
			return err
		}
		result["answer"] = json.RawMessage(text)
	}
	t.add(told.Code().String(), result)
	return nil
}

func optionsOf(o callOrder) []grpc.CallOption {
	var options []grpc.CallOption
	if o.Gzip {
		options = append(options, grpc.UseCompressor(gzip.Name))
	}
	if o.WaitForReady {
		options = append(options, grpc.WaitForReady(true))
	}
	if o.Subtype != "" {
		options = append(options, grpc.CallContentSubtype(o.Subtype))
	}
	return options
}
