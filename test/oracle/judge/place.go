// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/parallelize"
)

// placeInTurn judges each placement against the cluster with all earlier ones in place, refused ones included:
// one refusal then does not hide what follows. Volumes that a placed pod takes are taken for the next.
func placeInTurn(asked question) answer {
	c := asked.Cluster
	b, err := newBench(parallelize.NewParallelizer(parallelize.DefaultParallelism))
	if err != nil {
		return answer{Fault: err.Error()}
	}
	if err := c.fill(b.handle.informers); err != nil {
		return answer{Fault: err.Error()}
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	world := cache.New(ctx, nil, false)
	for _, node := range c.Nodes {
		world.AddNode(klog.Logger{}, node)
	}
	for _, pod := range c.running() {
		if err := world.AddPod(klog.Logger{}, withUID(pod)); err != nil {
			return answer{Fault: err.Error()}
		}
	}
	arriving := make(map[string]*v1.Node, len(asked.Arriving))
	for _, node := range asked.Arriving {
		arriving[node.Name] = node
	}
	steps := make([][]string, 0, len(asked.Placements))
	for _, step := range asked.Placements {
		if node, joins := arriving[step.Node]; joins {
			world.AddNode(klog.Logger{}, node)
			delete(arriving, step.Node)
		}
		refusing, err := b.place(world, step)
		if err != nil {
			return answer{Fault: err.Error()}
		}
		steps = append(steps, refusing)
	}
	return answer{Steps: steps, Trouble: b.trouble}
}

func (b *bench) place(world cache.Cache, step placement) ([]string, error) {
	if err := world.UpdateSnapshot(klog.Logger{}, b.handle.lister.now); err != nil {
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
	refusing := []string{}
	for _, plugin := range b.plugins {
		h := b.hear(plugin, step.Pod, nodes)
		if b.refuses(h, step.Pod, node) {
			refusing = append(refusing, plugin.Name())
		} else if reserves, can := plugin.(fwk.ReservePlugin); can && !h.passed && !step.Probe {
			b.note(plugin, step.Pod, reserves.Reserve(context.Background(), h.state, step.Pod, step.Node))
		}
	}
	if step.Probe {
		return refusing, nil
	}
	placed := withUID(step.Pod)
	placed.Spec.NodeName = step.Node
	return refusing, world.AddPod(klog.Logger{}, placed)
}

// withUID gives a pod what the scheduler's cache knows it by.
func withUID(pod *v1.Pod) *v1.Pod {
	named := pod.DeepCopy()
	if named.UID == "" {
		named.UID = types.UID(named.Namespace + "/" + named.Name)
	}
	return named
}
