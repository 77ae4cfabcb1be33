// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
)

// What the server sent on all connections of a client, as far as calls do not show it. Of what is encrypted only the
// connections are counted.
type wire struct {
	mutex       sync.Mutex
	connections int
	open        int
	pings       int
	goAways     []uint32
	changed     chan struct{}
}

func newWire() *wire {
	return &wire{goAways: []uint32{}, changed: make(chan struct{})}
}

func (w *wire) change(work func()) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	work()
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *wire) seen() outcome {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return outcome{
		"connections": w.connections,
		"open":        w.open,
		"pings":       w.pings,
		"goAways":     append([]uint32{}, w.goAways...),
	}
}

func (w *wire) awaitPings(ctx context.Context, pings int) error {
	for {
		w.mutex.Lock()
		enough, changed := w.pings >= pings, w.changed
		w.mutex.Unlock()
		if enough {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *wire) follow(connection net.Conn, isPlain bool) net.Conn {
	w.change(func() {
		w.connections++
		w.open++
	})
	return &followed{Conn: connection, wire: w, isPlain: isPlain}
}

type followed struct {
	net.Conn
	wire    *wire
	isPlain bool
	closing sync.Once
	// Of the frame that comes.
	frame []byte
}

const (
	frameHeader = 9
	framePing   = 6
	frameGoAway = 7
	flagAck     = 1
)

func (f *followed) Read(into []byte) (int, error) {
	n, err := f.Conn.Read(into)
	if f.isPlain {
		f.look(into[:n])
	}
	return n, err
}

func (f *followed) look(bytes []byte) {
	f.frame = append(f.frame, bytes...)
	for len(f.frame) >= frameHeader {
		length := frameHeader + int(binary.BigEndian.Uint32(f.frame)>>8)
		if len(f.frame) < length {
			return
		}
		f.tell(f.frame[3], f.frame[4], f.frame[frameHeader:length])
		f.frame = f.frame[length:]
	}
}

func (f *followed) tell(kind, flags byte, payload []byte) {
	switch {
	case kind == framePing && flags&flagAck != 0:
		f.wire.change(func() { f.wire.pings++ })
	case kind == frameGoAway:
		code := binary.BigEndian.Uint32(payload[4:])
		f.wire.change(func() { f.wire.goAways = append(f.wire.goAways, code) })
	}
}

func (f *followed) Close() error {
	f.closing.Do(func() { f.wire.change(func() { f.wire.open-- }) })
	return f.Conn.Close()
}
