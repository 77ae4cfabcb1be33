// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

func evaluateLabelSelector(req request) response {
	var source *metav1.LabelSelector
	if err := json.Unmarshal(req.Selector, &source); err != nil {
		return response{"error": err.Error()}
	}
	selector, err := metav1.LabelSelectorAsSelector(source)
	if err != nil {
		return refused(err)
	}
	return response{"matches": selector.Matches(labels.Set(req.Labels))}
}

func evaluateNodeSelector(req request) response {
	var source v1.NodeSelector
	if err := json.Unmarshal(req.Selector, &source); err != nil {
		return response{"error": err.Error()}
	}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: req.NodeName, Labels: req.Labels}}
	matches, _ := nodeaffinity.NewLazyErrorNodeSelector(&source).Match(node)
	_, err := nodeaffinity.NewNodeSelector(&source)
	return response{"matches": matches, "wellFormed": err == nil}
}

func evaluateTolerates(req request) response {
	var toleration v1.Toleration
	var taint v1.Taint
	if err := json.Unmarshal(req.Toleration, &toleration); err != nil {
		return response{"error": err.Error()}
	}
	if err := json.Unmarshal(req.Taint, &taint); err != nil {
		return response{"error": err.Error()}
	}
	return response{"tolerates": toleration.ToleratesTaint(klog.Logger{}, &taint, true)}
}

func evaluateUntolerated(req request) response {
	var tolerations []v1.Toleration
	var taints []v1.Taint
	if err := json.Unmarshal(req.Tolerations, &tolerations); err != nil {
		return response{"error": err.Error()}
	}
	if err := json.Unmarshal(req.Taints, &taints); err != nil {
		return response{"error": err.Error()}
	}
	repels := func(t *v1.Taint) bool {
		return t.Effect == v1.TaintEffectNoSchedule || t.Effect == v1.TaintEffectNoExecute
	}
	taint, found := corev1helpers.FindMatchingUntoleratedTaint(klog.Logger{}, taints, tolerations, repels, true)
	if !found {
		return response{"untolerated": nil}
	}
	return response{"untolerated": taint.ToString()}
}

func evaluateTaintText(req request) response {
	var taint v1.Taint
	if err := json.Unmarshal(req.Taint, &taint); err != nil {
		return response{"error": err.Error()}
	}
	return response{"text": taint.ToString()}
}
