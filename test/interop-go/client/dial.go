// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"time"
	_ "unsafe" // for go:linkname

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// Ten seconds by default; a test with many pings lowers it.
//
//go:linkname keepaliveMinPingTime google.golang.org/grpc/internal.KeepaliveMinPingTime
var keepaliveMinPingTime time.Duration

type dialCommand struct {
	Target        string `json:"target"`
	CA            string `json:"ca"`
	Cert          string `json:"cert"`
	Key           string `json:"key"`
	KeepaliveMs   int    `json:"keepaliveMs"`
	ServiceConfig string `json:"serviceConfig"`
	UserAgent     string `json:"userAgent"`
}

type client struct {
	connection *grpc.ClientConn
	wire       *wireMonitor
}

func dial(o dialCommand) (*client, error) {
	secure, err := buildCredentials(o)
	if err != nil {
		return nil, err
	}
	w := newWireMonitor()
	dialer := func(ctx context.Context, address string) (net.Conn, error) {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		return w.track(connection, o.CA == ""), nil
	}
	options := []grpc.DialOption{grpc.WithTransportCredentials(secure), grpc.WithContextDialer(dialer)}
	if o.KeepaliveMs > 0 {
		keepaliveMinPingTime = time.Millisecond
		options = append(options, grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time:                time.Duration(o.KeepaliveMs) * time.Millisecond,
			Timeout:             20 * time.Second,
			PermitWithoutStream: true,
		}))
	}
	if o.ServiceConfig != "" {
		options = append(options, grpc.WithDefaultServiceConfig(o.ServiceConfig))
	}
	if o.UserAgent != "" {
		options = append(options, grpc.WithUserAgent(o.UserAgent))
	}
	// As the autoscaler does; newer versions of grpc-go rename it.
	connection, err := grpc.Dial(o.Target, options...)
	return &client{connection, w}, err
}

func buildCredentials(o dialCommand) (credentials.TransportCredentials, error) {
	if o.CA == "" {
		return insecure.NewCredentials(), nil
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	if !config.RootCAs.AppendCertsFromPEM([]byte(o.CA)) {
		return nil, errors.New("ca contains no certificate")
	}
	if o.Cert != "" {
		pair, err := tls.X509KeyPair([]byte(o.Cert), []byte(o.Key))
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return credentials.NewTLS(config), nil
}

// Waits until the connection is in a state, or this many pings were acknowledged.
func (c *client) await(state string, pings int) (outcome, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if pings > 0 {
		return c.stats(), c.wire.awaitPings(ctx, pings)
	}
	for {
		now := c.connection.GetState()
		if now.String() == state {
			return c.stats(), nil
		}
		if now == connectivity.Idle {
			c.connection.Connect()
		}
		if !c.connection.WaitForStateChange(ctx, now) {
			return nil, errors.New("timed out in state " + now.String())
		}
	}
}

func (c *client) stats() outcome {
	result := c.wire.stats()
	result["state"] = c.connection.GetState().String()
	return result
}
