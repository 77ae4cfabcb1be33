// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"math/big"
	"strings"
	"time"

	inf "gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	kubeletapis "k8s.io/kubelet/pkg/apis"
)

// scaled is the quantity times 10^places as an integer, rounded away from zero.
func scaled(q resource.Quantity, places inf.Scale) *big.Int {
	return new(inf.Dec).Round(q.AsDec(), places, inf.RoundUp).UnscaledBig()
}

// integer prefers what Kubernetes' accessor says. It overflows silently, and for negative amounts it rounds
// differently depending on how the amount happens to be stored; there the documented rule decides.
func integer(q resource.Quantity, places inf.Scale, accessor int64) string {
	exact := scaled(q.DeepCopy(), places)
	if exact.Sign() < 0 || !exact.IsInt64() {
		return exact.String()
	}
	return big.NewInt(accessor).String()
}

func describe(q resource.Quantity) answer {
	number, suffix := q.CanonicalizeBytes(nil)
	return answer{
		"canonical": string(number) + string(suffix),
		"format":    string(q.Format),
		"milli":     integer(q, 3, q.MilliValue()),
		"whole":     integer(q, 0, q.Value()),
		"nano":      scaled(q.DeepCopy(), 9).String(),
	}
}

func judgeQuantity(asked question) answer {
	q, err := resource.ParseQuantity(asked.Text)
	if err != nil {
		return refused(err)
	}
	return describe(q)
}

func judgeQuantityArithmetic(asked question) answer {
	left, err := resource.ParseQuantity(asked.Text)
	if err != nil {
		return refused(err)
	}
	right, err := resource.ParseQuantity(asked.Other)
	if err != nil {
		return refused(err)
	}
	sum, difference := left.DeepCopy(), left.DeepCopy()
	sum.Add(right.DeepCopy())
	difference.Sub(right.DeepCopy())
	return answer{"sum": describe(sum), "difference": describe(difference), "compared": left.Cmp(right)}
}

func judgeDuration(asked question) answer {
	d, err := time.ParseDuration(asked.Text)
	if err != nil {
		return refused(err)
	}
	return answer{"nanoseconds": big.NewInt(int64(d)).String(), "canonical": d.String()}
}

func verdict(problems []string) answer {
	if len(problems) > 0 {
		return refused(errors.New(strings.Join(problems, "; ")))
	}
	return answer{}
}

func judgeLabelKey(asked question) answer   { return verdict(validation.IsQualifiedName(asked.Text)) }
func judgeLabelValue(asked question) answer { return verdict(validation.IsValidLabelValue(asked.Text)) }
func judgeDNSLabel(asked question) answer   { return verdict(validation.IsDNS1123Label(asked.Text)) }
func judgeDNSSubdomain(asked question) answer {
	return verdict(validation.IsDNS1123Subdomain(asked.Text))
}

// judgeKubeletLabel asks Kubernetes which labels are the kubelet's. That it may set any label outside the
// two reserved domains is a rule of the NodeRestriction admission plugin, which no library exports.
func judgeKubeletLabel(asked question) answer {
	namespace, _, found := strings.Cut(asked.Text, "/")
	reserved := found && (strings.HasSuffix("."+namespace, ".kubernetes.io") || strings.HasSuffix("."+namespace, ".k8s.io"))
	return answer{"mayNotSet": reserved && !kubeletapis.IsKubeletLabel(asked.Text)}
}
