// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
)

// Counts connections, ping acknowledgements and GOAWAYs of a client. With TLS it counts connections only.
type wireMonitor struct {
	mutex       sync.Mutex
	connections int
	open        int
	pings       int
	goAways     []uint32
	changed     chan struct{}
}

func newWireMonitor() *wireMonitor {
	return &wireMonitor{goAways: []uint32{}, changed: make(chan struct{})}
}

func (w *wireMonitor) change(work func()) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	work()
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *wireMonitor) stats() outcome {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return outcome{
		"connections": w.connections,
		"open":        w.open,
		"pings":       w.pings,
		"goAways":     append([]uint32{}, w.goAways...),
	}
}

func (w *wireMonitor) awaitPings(ctx context.Context, pings int) error {
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

func (w *wireMonitor) track(connection net.Conn, isPlain bool) net.Conn {
	w.change(func() {
		w.connections++
		w.open++
	})
	return &trackedConn{Conn: connection, wire: w, isPlain: isPlain}
}

type trackedConn struct {
	net.Conn
	wire    *wireMonitor
	isPlain bool
	closing sync.Once
	// Bytes of the incomplete frame.
	frame []byte
}

const (
	frameHeader = 9
	framePing   = 6
	frameGoAway = 7
	flagAck     = 1
)

func (f *trackedConn) Read(into []byte) (int, error) {
	n, err := f.Conn.Read(into)
	if f.isPlain {
		f.parseFrames(into[:n])
	}
	return n, err
}

func (f *trackedConn) parseFrames(bytes []byte) {
	f.frame = append(f.frame, bytes...)
	for len(f.frame) >= frameHeader {
		length := frameHeader + int(binary.BigEndian.Uint32(f.frame)>>8)
		if len(f.frame) < length {
			return
		}
		f.record(f.frame[3], f.frame[4], f.frame[frameHeader:length])
		f.frame = f.frame[length:]
	}
}

func (f *trackedConn) record(kind, flags byte, payload []byte) {
	switch {
	case kind == framePing && flags&flagAck != 0:
		f.wire.change(func() { f.wire.pings++ })
	case kind == frameGoAway:
		code := binary.BigEndian.Uint32(payload[4:])
		f.wire.change(func() { f.wire.goAways = append(f.wire.goAways, code) })
	}
}

func (f *trackedConn) Close() error {
	f.closing.Do(func() { f.wire.change(func() { f.wire.open-- }) })
	return f.Conn.Close()
}
