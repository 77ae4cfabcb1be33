// SPDX-License-Identifier: Apache-2.0

// The reference program evaluates the requests of the parity tests with Kubernetes' own code.
// One JSON request per line on stdin, one JSON response per line on stdout, in the same order.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/klog/v2"
)

// request contains the fields of all kinds; a kind reads its own fields and ignores the others.
type request struct {
	Kind        string            `json:"kind"`
	Text        string            `json:"text"`
	Labels      map[string]string `json:"labels"`
	NodeName    string            `json:"nodeName"`
	Selector    json.RawMessage   `json:"selector"`
	Toleration  json.RawMessage   `json:"toleration"`
	Tolerations json.RawMessage   `json:"tolerations"`
	Taint       json.RawMessage   `json:"taint"`
	Taints      json.RawMessage   `json:"taints"`
}

// response depends on the kind. It contains only "refused" when Kubernetes rejects the input.
type response map[string]any

func refused(err error) response {
	return response{"refused": err.Error()}
}

var kinds = map[string]func(request) response{
	"quantity":      evaluateQuantity,
	"duration":      evaluateDuration,
	"labelKey":      evaluateLabelKey,
	"labelValue":    evaluateLabelValue,
	"dnsLabel":      evaluateDNSLabel,
	"dnsSubdomain":  evaluateDNSSubdomain,
	"kubeletLabel":  evaluateKubeletLabel,
	"labelSelector": evaluateLabelSelector,
	"nodeSelector":  evaluateNodeSelector,
	"tolerates":     evaluateTolerates,
	"untolerated":   evaluateUntolerated,
	"taintText":     evaluateTaintText,
}

func evaluate(line []byte) response {
	var req request
	if err := json.Unmarshal(line, &req); err != nil {
		return response{"error": err.Error()}
	}
	handler, known := kinds[req.Kind]
	if !known {
		return response{"error": fmt.Sprintf("unknown kind %q", req.Kind)}
	}
	return handler(req)
}

func main() {
	klog.SetLogger(klog.Logger{}) // comparing numeric tolerations logs every value that is not a number
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 0, 1<<16), 1<<26)
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	for lines.Scan() {
		if err := encoder.Encode(evaluate(lines.Bytes())); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := out.Flush(); err != nil {
			os.Exit(1)
		}
	}
}
