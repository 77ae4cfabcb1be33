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

// Ten seconds, unless a test wants to see many pings.
//
//go:linkname keepaliveMinPingTime google.golang.org/grpc/internal.KeepaliveMinPingTime
var keepaliveMinPingTime time.Duration

type dialOrder struct {
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
	wire       *wire
}

func dial(o dialOrder) (*client, error) {
	secure, err := credentialsOf(o)
	if err != nil {
		return nil, err
	}
	w := newWire()
	dialer := func(ctx context.Context, address string) (net.Conn, error) {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		return w.follow(connection, o.CA == ""), nil
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
	// As the autoscaler does it; newer versions have another name for it.
	connection, err := grpc.Dial(o.Target, options...)
	return &client{connection, w}, err
}

func credentialsOf(o dialOrder) (credentials.TransportCredentials, error) {
	if o.CA == "" {
		return insecure.NewCredentials(), nil
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	if !config.RootCAs.AppendCertsFromPEM([]byte(o.CA)) {
		return nil, errors.New("no certificate in ca")
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

// Until the connection is in a state, or so many pings were answered.
func (c *client) await(state string, pings int) (outcome, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if pings > 0 {
		return c.seen(), c.wire.awaitPings(ctx, pings)
	}
	for {
		now := c.connection.GetState()
		if now.String() == state {
			return c.seen(), nil
		}
		if now == connectivity.Idle {
			c.connection.Connect()
		}
		if !c.connection.WaitForStateChange(ctx, now) {
			return nil, errors.New("still " + now.String())
		}
	}
}

func (c *client) seen() outcome {
	result := c.wire.seen()
	result["state"] = c.connection.GetState().String()
	return result
}
