// SPDX-License-Identifier: Apache-2.0
package main

import (
	"context"

	// Registers the health check that a service config can enable.
	_ "google.golang.org/grpc/health"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

func failure(err error) outcome {
	st := status.Convert(err)
	return outcome{"code": st.Code().String(), "message": st.Message()}
}

func (c *client) check(service string) (outcome, error) {
	response, err := health.NewHealthClient(c.connection).Check(context.Background(), &health.HealthCheckRequest{Service: service})
	result := failure(err)
	result["status"] = response.GetStatus().String()
	return result, nil
}

type watch struct {
	stream health.Health_WatchClient
	err    error
}

func (c *client) watch(ctx context.Context, service string) *watch {
	stream, err := health.NewHealthClient(c.connection).Watch(ctx, &health.HealthCheckRequest{Service: service})
	return &watch{stream, err}
}

func (w *watch) next() (outcome, error) {
	if w.err != nil {
		return failure(w.err), nil
	}
	response, err := w.stream.Recv()
	if err != nil && err.Error() == "EOF" {
		return outcome{"code": "EOF"}, nil
	}
	result := failure(err)
	result["status"] = response.GetStatus().String()
	return result, nil
}
