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

// integer returns the value of Kubernetes' accessor. The accessor overflows silently, and its rounding of negative
// amounts depends on the internal representation; in these cases the documented rule is applied instead.
func integer(q resource.Quantity, places inf.Scale, accessor int64) string {
	exact := scaled(q.DeepCopy(), places)
	if exact.Sign() < 0 || !exact.IsInt64() {
		return exact.String()
	}
	return big.NewInt(accessor).String()
}

func describe(q resource.Quantity) response {
	number, suffix := q.CanonicalizeBytes(nil)
	return response{
		"canonical": string(number) + string(suffix),
		"format":    string(q.Format),
		"milli":     integer(q, 3, q.MilliValue()),
		"whole":     integer(q, 0, q.Value()),
		"nano":      scaled(q.DeepCopy(), 9).String(),
	}
}

func evaluateQuantity(req request) response {
	q, err := resource.ParseQuantity(req.Text)
	if err != nil {
		return refused(err)
	}
	return describe(q)
}

func evaluateDuration(req request) response {
	d, err := time.ParseDuration(req.Text)
	if err != nil {
		return refused(err)
	}
	return response{"nanoseconds": big.NewInt(int64(d)).String(), "canonical": d.String()}
}

func validationResult(problems []string) response {
	if len(problems) > 0 {
		return refused(errors.New(strings.Join(problems, "; ")))
	}
	return response{}
}

func evaluateLabelKey(req request) response {
	return validationResult(validation.IsQualifiedName(req.Text))
}
func evaluateLabelValue(req request) response {
	return validationResult(validation.IsValidLabelValue(req.Text))
}
func evaluateDNSLabel(req request) response {
	return validationResult(validation.IsDNS1123Label(req.Text))
}
func evaluateDNSSubdomain(req request) response {
	return validationResult(validation.IsDNS1123Subdomain(req.Text))
}

// evaluateKubeletLabel uses Kubernetes' list of kubelet labels. The rule that a kubelet may set any label outside the
// two reserved domains is part of the NodeRestriction admission plugin, which no library exports.
func evaluateKubeletLabel(req request) response {
	namespace, _, found := strings.Cut(req.Text, "/")
	reserved := found && (strings.HasSuffix("."+namespace, ".kubernetes.io") || strings.HasSuffix("."+namespace, ".k8s.io"))
	return response{"mayNotSet": reserved && !kubeletapis.IsKubeletLabel(req.Text)}
}
