// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/parallelize"
)

// placeAll checks each placement in the cluster with all earlier ones, including rejected ones, so that one rejection
// does not hide later ones. Volumes that a placed pod uses are in use for the next.
func placeAll(req request) response {
	c := req.Cluster
	b, err := newPluginRunner(parallelize.NewParallelizer(parallelize.DefaultParallelism), req.FeatureGates)
	if err != nil {
		return response{Error: err.Error()}
	}
	if err := c.fill(b.handle.informers); err != nil {
		return response{Error: err.Error()}
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	schedulerCache := cache.New(ctx, nil, false)
	for _, node := range c.Nodes {
		schedulerCache.AddNode(klog.Logger{}, node)
	}
	for _, pod := range c.running() {
		if err := schedulerCache.AddPod(klog.Logger{}, withUID(pod)); err != nil {
			return response{Error: err.Error()}
		}
	}
	arriving := make(map[string]*v1.Node, len(req.Arriving))
	for _, node := range req.Arriving {
		arriving[node.Name] = node
	}
	steps := make([][]string, 0, len(req.Placements))
	for _, step := range req.Placements {
		if node, joins := arriving[step.Node]; joins {
			schedulerCache.AddNode(klog.Logger{}, node)
			delete(arriving, step.Node)
		}
		if step.Created {
			defaults.SetObjectDefaults_Pod(step.Pod)
		}
		rejecting, err := b.place(schedulerCache, step)
		if err != nil {
			return response{Error: err.Error()}
		}
		steps = append(steps, rejecting)
	}
	return response{Steps: steps, Errors: b.errors}
}

func (b *pluginRunner) place(schedulerCache cache.Cache, step placement) ([]string, error) {
	if err := schedulerCache.UpdateSnapshot(klog.Logger{}, b.handle.lister.now); err != nil {
		return nil, err
	}
	nodes, err := b.handle.lister.now.List()
	if err != nil {
		return nil, err
	}
	node, err := b.handle.lister.now.NodeInfos().Get(step.Node)
	if err != nil {
		return nil, fmt.Errorf("placing %s: %w", step.Pod.Name, err)
	}
	rejecting := []string{}
	for _, plugin := range b.plugins {
		h := b.preFilter(plugin, step.Pod, nodes)
		if b.rejects(h, step.Pod, node) {
			rejecting = append(rejecting, plugin.Name())
		} else if reserves, can := plugin.(fwk.ReservePlugin); can && !h.skipped && !step.Probe {
			b.recordError(plugin, step.Pod, reserves.Reserve(context.Background(), h.state, step.Pod, step.Node))
		}
	}
	if step.Probe {
		return rejecting, nil
	}
	placed := withUID(step.Pod)
	placed.Spec.NodeName = step.Node
	return rejecting, schedulerCache.AddPod(klog.Logger{}, placed)
}

// withUID sets the UID by which the scheduler's cache identifies a pod.
func withUID(pod *v1.Pod) *v1.Pod {
	named := pod.DeepCopy()
	if named.UID == "" {
		named.UID = types.UID(named.Namespace + "/" + named.Name)
	}
	return named
}
