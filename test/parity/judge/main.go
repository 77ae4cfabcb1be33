// SPDX-License-Identifier: Apache-2.0

// The judge answers, in Kubernetes' own code, the questions that the model answers in ours.
// One JSON question per line on stdin, one JSON answer per line on stdout, in the same order.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/klog/v2"
)

// question carries every field any kind needs; a kind reads its own and ignores the rest.
type question struct {
	Kind        string            `json:"kind"`
	Text        string            `json:"text"`
	Other       string            `json:"other"`
	Labels      map[string]string `json:"labels"`
	NodeName    string            `json:"nodeName"`
	Selector    json.RawMessage   `json:"selector"`
	Toleration  json.RawMessage   `json:"toleration"`
	Tolerations json.RawMessage   `json:"tolerations"`
	Taint       json.RawMessage   `json:"taint"`
	Taints      json.RawMessage   `json:"taints"`
}

// answer is whatever the kind has to say; "refused" alone when Kubernetes does not accept the input.
type answer map[string]any

func refused(err error) answer {
	return answer{"refused": err.Error()}
}

var kinds = map[string]func(question) answer{
	"quantity":           judgeQuantity,
	"quantityArithmetic": judgeQuantityArithmetic,
	"duration":           judgeDuration,
	"labelKey":           judgeLabelKey,
	"labelValue":         judgeLabelValue,
	"dnsLabel":           judgeDNSLabel,
	"dnsSubdomain":       judgeDNSSubdomain,
	"kubeletLabel":       judgeKubeletLabel,
	"selectorText":       judgeSelectorText,
	"labelSelector":      judgeLabelSelector,
	"nodeSelector":       judgeNodeSelector,
	"tolerates":          judgeTolerates,
	"untolerated":        judgeUntolerated,
	"taintText":          judgeTaintText,
}

func judge(line []byte) answer {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{"fault": err.Error()}
	}
	ask, known := kinds[asked.Kind]
	if !known {
		return answer{"fault": fmt.Sprintf("unknown kind %q", asked.Kind)}
	}
	return ask(asked)
}

func main() {
	klog.SetLogger(klog.Logger{}) // the comparison of numeric tolerations logs every value it cannot read
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 0, 1<<16), 1<<26)
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	for lines.Scan() {
		if err := encoder.Encode(judge(lines.Bytes())); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := out.Flush(); err != nil {
			os.Exit(1)
		}
	}
}
