// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

var operatorNames = map[selection.Operator]string{
	selection.Equals:       "In",
	selection.DoubleEquals: "In",
	selection.In:           "In",
	selection.NotEquals:    "NotIn",
	selection.NotIn:        "NotIn",
	selection.Exists:       "Exists",
	selection.DoesNotExist: "DoesNotExist",
	selection.GreaterThan:  "Gt",
	selection.LessThan:     "Lt",
}

func judgeSelectorText(asked question) answer {
	selector, err := labels.Parse(asked.Text)
	if err != nil {
		return refused(err)
	}
	requirements, _ := selector.Requirements()
	told := []answer{}
	for _, r := range requirements {
		told = append(told, answer{"key": r.Key(), "operator": operatorNames[r.Operator()], "values": r.Values().List()})
	}
	return answer{"requirements": told, "matches": selector.Matches(labels.Set(asked.Labels))}
}

func judgeLabelSelector(asked question) answer {
	var source *metav1.LabelSelector
	if err := json.Unmarshal(asked.Selector, &source); err != nil {
		return answer{"fault": err.Error()}
	}
	selector, err := metav1.LabelSelectorAsSelector(source)
	if err != nil {
		return refused(err)
	}
	return answer{"matches": selector.Matches(labels.Set(asked.Labels))}
}

func judgeNodeSelector(asked question) answer {
	var source v1.NodeSelector
	if err := json.Unmarshal(asked.Selector, &source); err != nil {
		return answer{"fault": err.Error()}
	}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: asked.NodeName, Labels: asked.Labels}}
	matches, _ := nodeaffinity.NewLazyErrorNodeSelector(&source).Match(node)
	_, err := nodeaffinity.NewNodeSelector(&source)
	return answer{"matches": matches, "wellFormed": err == nil}
}

func judgeTolerates(asked question) answer {
	var toleration v1.Toleration
	var taint v1.Taint
	if err := json.Unmarshal(asked.Toleration, &toleration); err != nil {
		return answer{"fault": err.Error()}
	}
	if err := json.Unmarshal(asked.Taint, &taint); err != nil {
		return answer{"fault": err.Error()}
	}
	return answer{"tolerates": toleration.ToleratesTaint(klog.Logger{}, &taint, true)}
}

func judgeUntolerated(asked question) answer {
	var tolerations []v1.Toleration
	var taints []v1.Taint
	if err := json.Unmarshal(asked.Tolerations, &tolerations); err != nil {
		return answer{"fault": err.Error()}
	}
	if err := json.Unmarshal(asked.Taints, &taints); err != nil {
		return answer{"fault": err.Error()}
	}
	keepsOut := func(t *v1.Taint) bool {
		return t.Effect == v1.TaintEffectNoSchedule || t.Effect == v1.TaintEffectNoExecute
	}
	taint, found := corev1helpers.FindMatchingUntoleratedTaint(klog.Logger{}, taints, tolerations, keepsOut, true)
	if !found {
		return answer{"untolerated": nil}
	}
	return answer{"untolerated": taint.ToString()}
}

func judgeTaintText(asked question) answer {
	var taint v1.Taint
	if err := json.Unmarshal(asked.Taint, &taint); err != nil {
		return answer{"fault": err.Error()}
	}
	return answer{"text": taint.ToString()}
}
