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

type callCommand struct {
	RPC       string          `json:"rpc"`
	Request   json.RawMessage `json:"request"`
	TimeoutNs int64           `json:"timeoutNs"`
	// Values are base64.
	Metadata     []metadataPair `json:"metadata"`
	Gzip         bool           `json:"gzip"`
	WaitForReady bool           `json:"waitForReady"`
	Subtype      string         `json:"subtype"`
	// Sequential calls per goroutine, and number of goroutines.
	Count    int `json:"count"`
	Parallel int `json:"parallel"`
	// Omits the response, which may be large.
	Quiet bool `json:"quiet"`
}

type metadataPair struct {
	Name  string `json:"name"`
	Value []byte `json:"value"`
}

func newContext(o callCommand) (context.Context, func()) {
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
	// Keeps the first failure, else the last success.
	if t.last == nil || t.last["code"] == "OK" {
		t.last = result
	}
}

func (c *client) call(ctx context.Context, s *schema, o callCommand) (outcome, error) {
	t := &tally{codes: map[string]int{}}
	faults := make(chan error, max(1, o.Parallel))
	for range max(1, o.Parallel) {
		go func() { faults <- c.callRepeatedly(ctx, s, o, t) }()
	}
	for range max(1, o.Parallel) {
		if err := <-faults; err != nil {
			return nil, err
		}
	}
	t.last["codes"] = t.codes
	return t.last, nil
}

func (c *client) callRepeatedly(ctx context.Context, s *schema, o callCommand, t *tally) error {
	for range max(1, o.Count) {
		if err := c.callOnce(ctx, s, o, t); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) callOnce(ctx context.Context, s *schema, o callCommand, t *tally) error {
	request, response, err := s.findMessages(o.RPC)
	if err != nil {
		return err
	}
	if len(o.Request) > 0 {
		if err := protojson.Unmarshal(o.Request, request); err != nil {
			return err
		}
	}
	var header, trailer metadata.MD
	err = c.connection.Invoke(ctx, o.RPC, request, response, append(callOptions(o), grpc.Header(&header), grpc.Trailer(&trailer))...)
	st := status.Convert(err)
	result := outcome{
		"code":    st.Code().String(),
		"message": st.Message(),
		"header":  header,
		"trailer": trailer,
		"bytes":   proto.Size(response),
	}
	if err == nil && !o.Quiet {
		text, err := (protojson.MarshalOptions{UseProtoNames: true}).Marshal(response)
		if err != nil {
			return err
		}
		result["response"] = json.RawMessage(text)
	}
	t.add(st.Code().String(), result)
	return nil
}

func callOptions(o callCommand) []grpc.CallOption {
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
