// SPDX-License-Identifier: Apache-2.0

// The scheduler program runs kube-scheduler's own filter and score plugins on pods and nodes.
// One JSON request per line on stdin, one JSON response per line on stdout, in the same order.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// request is a check of pending pods on every node ("filter"), their scores there ("score"), or a series of placements ("place").
type request struct {
	Kind       string      `json:"kind"`
	Cluster    cluster     `json:"cluster"`
	Pending    []*v1.Pod   `json:"pending"`
	Placements []placement `json:"placements"`
	// ReplicaSets are the controllers of pending pods whose scores are requested.
	ReplicaSets []*appsv1.ReplicaSet `json:"replicaSets"`
	// Arriving nodes join the cluster when a pod is placed on them for the first time.
	Arriving []*v1.Node `json:"arriving"`
	// FeatureGates that differ from the release's defaults.
	FeatureGates map[string]bool `json:"featureGates"`
}

type placement struct {
	Pod  *v1.Pod `json:"pod"`
	Node string  `json:"node"`
	// Probe: only check, do not place the pod.
	Probe bool `json:"probe"`
	// Created: the pod is as its controller sends it; the API server's defaults are added.
	Created bool `json:"created"`
}

// response contains the rejecting plugins by pending pod and node, in the order of the request; for placements, one
// list of plugins per step; the scores by pending pod and node, -1 where the pod does not fit. Errors lists statuses that are errors, not rejections.
type response struct {
	Rejections [][][]string `json:"rejections,omitempty"`
	Steps      [][]string   `json:"steps,omitempty"`
	Scores     [][]int64    `json:"scores,omitempty"`
	Errors     []string     `json:"errors,omitempty"`
	Error      string       `json:"error,omitempty"`
}

// runners holds the plugins by feature gates.
type runners map[string]*pluginRunner

func (r runners) of(gates map[string]bool) (*pluginRunner, error) {
	key := fmt.Sprint(gates)
	if known, has := r[key]; has {
		return known, nil
	}
	runner, err := newPluginRunner(sequential{}, gates)
	if err == nil {
		r[key] = runner
	}
	return runner, err
}

func respond(all runners, line []byte) (res response) {
	defer func() {
		if problem := recover(); problem != nil {
			res = response{Error: fmt.Sprint(problem)}
		}
	}()
	var req request
	if err := json.Unmarshal(line, &req); err != nil {
		return response{Error: err.Error()}
	}
	switch req.Kind {
	case "filter", "score":
		runner, err := all.of(req.FeatureGates)
		if err != nil {
			return response{Error: err.Error()}
		}
		if req.Kind == "score" {
			return runner.scoreNodes(req)
		}
		return runner.everyNode(req.Cluster, req.Pending)
	case "place":
		return placeAll(req)
	}
	return response{Error: fmt.Sprintf("unknown kind %q", req.Kind)}
}

func serve(in io.Reader, out io.Writer) error {
	all := runners{}
	lines := bufio.NewReaderSize(in, 1<<20)
	buffered := bufio.NewWriterSize(out, 1<<16)
	encoder := json.NewEncoder(buffered)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := encoder.Encode(respond(all, line)); err != nil {
			return err
		}
		if err := buffered.Flush(); err != nil {
			return err
		}
	}
}

func main() {
	klog.SetLogger(klog.Logger{})
	metrics.Register()
	debug.SetGCPercent(400) // requests are many and short-lived
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
