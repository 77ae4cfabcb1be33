// SPDX-License-Identifier: Apache-2.0

// The judge tells, with kube-scheduler's own plugins, which nodes would take a pod.
// One JSON question per line on stdin, one JSON answer per line on stdout, in the same order.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// question asks either about pending pods on every node ("judge") or about a series of placements ("place").
type question struct {
	Kind       string      `json:"kind"`
	Cluster    cluster     `json:"cluster"`
	Pending    []*v1.Pod   `json:"pending"`
	Placements []placement `json:"placements"`
	// Arriving nodes join the cluster when a pod is placed on them for the first time.
	Arriving []*v1.Node `json:"arriving"`
}

type placement struct {
	Pod  *v1.Pod `json:"pod"`
	Node string  `json:"node"`
	// Probe: only asked, the pod does not stay.
	Probe bool `json:"probe"`
}

// answer carries, per pending pod and node in the order asked, the plugins that refuse (none: the pod may run
// there); for placements, one list of plugins per step. Trouble lists statuses that are errors, not refusals.
type answer struct {
	Rejections [][][]string `json:"rejections,omitempty"`
	Steps      [][]string   `json:"steps,omitempty"`
	Trouble    []string     `json:"trouble,omitempty"`
	Fault      string       `json:"fault,omitempty"`
}

func ask(judge *bench, line []byte) (told answer) {
	defer func() {
		if problem := recover(); problem != nil {
			told = answer{Fault: fmt.Sprint(problem)}
		}
	}()
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{Fault: err.Error()}
	}
	switch asked.Kind {
	case "judge":
		return judge.everyNode(asked.Cluster, asked.Pending)
	case "place":
		return placeInTurn(asked)
	}
	return answer{Fault: fmt.Sprintf("unknown kind %q", asked.Kind)}
}

func serve(in io.Reader, out io.Writer) error {
	judge, err := newBench(sequential{})
	if err != nil {
		return err
	}
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
		if err := encoder.Encode(ask(judge, line)); err != nil {
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
	debug.SetGCPercent(400) // questions are many and short-lived
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
