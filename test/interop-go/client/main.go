// SPDX-License-Identifier: Apache-2.0

// A gRPC client on google.golang.org/grpc, which the Cluster Autoscaler uses. It reads commands as JSON from standard
// input, runs them concurrently, and writes each outcome with the command's id to standard output.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"google.golang.org/grpc"
)

type command struct {
	ID     int    `json:"id"`
	Do     string `json:"do"`
	Client string `json:"client"`

	// schema
	Descriptors []byte `json:"descriptors"`
	dialCommand
	callCommand
	Service string `json:"service"`
	// cancel, next: the id of another command
	Of int `json:"of"`
	// await
	State string `json:"state"`
	Pings int    `json:"pings"`
}

// Returns the next message of the server; the end of the stream has code "EOF".
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
		var o command
		if in.Decode(&o) != nil {
			return
		}
		// Started in order of arrival: later commands may refer to earlier ones.
		work := p.start(o)
		go p.respond(o.ID, work)
	}
}

func (p *program) respond(id int, work func() (outcome, error)) {
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

func (p *program) start(o command) func() (outcome, error) {
	switch o.Do {
	case "version":
		return at(outcome{"version": grpc.Version}, nil)
	case "schema":
		return at(nil, p.schema.read(o.Descriptors))
	case "dial":
		c, err := dial(o.dialCommand)
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
	return p.startOnClient(c, o)
}

func (p *program) startOnClient(c *client, o command) func() (outcome, error) {
	switch o.Do {
	case "call":
		ctx, cancel := newContext(o.callCommand)
		p.cancels[o.ID] = cancel
		return func() (outcome, error) { return c.call(ctx, &p.schema, o.callCommand) }
	case "check":
		return func() (outcome, error) { return c.check(o.Service) }
	case "watch":
		ctx, cancel := newContext(o.callCommand)
		p.cancels[o.ID] = cancel
		p.streams[o.ID] = c.watch(ctx, o.Service)
		return p.streams[o.ID].next
	case "openReflection":
		ctx, cancel := newContext(o.callCommand)
		p.cancels[o.ID] = cancel
		p.streams[o.ID] = c.openReflection(ctx, o.Service)
		return p.streams[o.ID].next
	case "reflect":
		return func() (outcome, error) { return c.reflect(o.Service) }
	case "await":
		return func() (outcome, error) { return c.await(o.State, o.Pings) }
	case "stats":
		return at(c.stats(), nil)
	case "close":
		return at(nil, c.connection.Close())
	}
	return at(nil, fmt.Errorf("unknown command %q", o.Do))
}
