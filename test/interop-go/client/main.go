// SPDX-License-Identifier: Apache-2.0

// A gRPC client on google.golang.org/grpc, as the Cluster Autoscaler's is. Orders come as JSON on standard input, each
// is carried out at once beside the others, and its outcome goes to standard output under the order's id.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"google.golang.org/grpc"
)

type order struct {
	ID     int    `json:"id"`
	Do     string `json:"do"`
	Client string `json:"client"`

	// schema
	Descriptors []byte `json:"descriptors"`
	dialOrder
	callOrder
	Service string `json:"service"`
	// cancel, next: the id of another order
	Of int `json:"of"`
	// await
	State string `json:"state"`
	Pings int    `json:"pings"`
}

// What the server says next; its end is "EOF".
type stream interface {
	next() (outcome, error)
}

type outcome map[string]any

type program struct {
	mutex   sync.Mutex
	schema  schema
	clients map[string]*client
	cancels map[int]func()
	streams map[int]stream
	out     *json.Encoder
}

func main() {
	p := &program{
		clients: map[string]*client{},
		cancels: map[int]func(){},
		streams: map[int]stream{},
		out:     json.NewEncoder(os.Stdout),
	}
	in := json.NewDecoder(os.Stdin)
	for {
		var o order
		if in.Decode(&o) != nil {
			return
		}
		// Those that others refer to take effect in their order.
		begun := p.begin(o)
		go p.tell(o.ID, begun)
	}
}

func (p *program) tell(id int, work func() (outcome, error)) {
	result, err := work()
	if err != nil {
		result = outcome{"fault": err.Error()}
	}
	if result == nil {
		result = outcome{}
	}
	result["id"] = id
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if err := p.out.Encode(result); err != nil {
		panic(err)
	}
}

func at(result outcome, err error) func() (outcome, error) {
	return func() (outcome, error) { return result, err }
}

func (p *program) begin(o order) func() (outcome, error) {
	switch o.Do {
	case "version":
		return at(outcome{"version": grpc.Version}, nil)
	case "schema":
		return at(nil, p.schema.read(o.Descriptors))
	case "dial":
		c, err := dial(o.dialOrder)
		p.clients[o.Client] = c
		return at(nil, err)
	case "cancel":
		p.cancels[o.Of]()
		return at(nil, nil)
	case "next":
		return p.streams[o.Of].next
	}
	c := p.clients[o.Client]
	if c == nil {
		return at(nil, fmt.Errorf("no client %q", o.Client))
	}
	return p.beginWith(c, o)
}

func (p *program) beginWith(c *client, o order) func() (outcome, error) {
	switch o.Do {
	case "call":
		ctx, cancel := contextOf(o.callOrder)
		p.cancels[o.ID] = cancel
		return func() (outcome, error) { return c.call(ctx, &p.schema, o.callOrder) }
	case "check":
		return func() (outcome, error) { return c.check(o.Service) }
	case "watch":
		ctx, cancel := contextOf(o.callOrder)
		p.cancels[o.ID] = cancel
		p.streams[o.ID] = c.watch(ctx, o.Service)
		return p.streams[o.ID].next
	case "converse":
		ctx, cancel := contextOf(o.callOrder)
		p.cancels[o.ID] = cancel
		p.streams[o.ID] = c.converse(ctx, o.Service)
		return p.streams[o.ID].next
	case "reflect":
		return func() (outcome, error) { return c.reflect(o.Service) }
	case "await":
		return func() (outcome, error) { return c.await(o.State, o.Pings) }
	case "seen":
		return at(c.seen(), nil)
	case "close":
		return at(nil, c.connection.Close())
	}
	return at(nil, fmt.Errorf("no order %q", o.Do))
}
