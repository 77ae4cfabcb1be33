// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// scored are the plugins whose scores the simulation predicts; their weights are those of the default profile.
var scored = map[string]bool{
	names.NodeResourcesFit:                true,
	names.NodeResourcesBalancedAllocation: true,
	names.PodTopologySpread:               true,
	names.NodeAffinity:                    true,
	names.TaintToleration:                 true,
}

type scorer struct {
	plugin fwk.ScorePlugin
	weight int64
}

// newScorers creates the plugins that are scored, with the arguments and weights of the default profile.
func newScorers(h *handle) ([]scorer, error) {
	defaults, err := latest.Default()
	if err != nil {
		return nil, err
	}
	profile := defaults.Profiles[0]
	arguments := map[string]runtime.Object{}
	for _, entry := range profile.PluginConfig {
		arguments[entry.Name] = entry.Args
	}
	registry := plugins.NewInTreeRegistry()
	all := []scorer{}
	for _, enabled := range enabledScorers(profile.Plugins) {
		plugin, err := registry[enabled.Name](context.Background(), arguments[enabled.Name], h)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", enabled.Name, err)
		}
		all = append(all, scorer{plugin: plugin.(fwk.ScorePlugin), weight: int64(enabled.Weight)})
	}
	if len(all) != len(scored) {
		return nil, fmt.Errorf("the default profile has %d of %d score plugins", len(all), len(scored))
	}
	return all, nil
}

func enabledScorers(all *config.Plugins) []config.Plugin {
	found := []config.Plugin{}
	for _, enabled := range all.MultiPoint.Enabled {
		if scored[enabled.Name] {
			found = append(found, enabled)
		}
	}
	return found
}

// scoreNodes returns the weighted score of every node for each pending pod, -1 where the pod does not fit.
func (b *pluginRunner) scoreNodes(req request) response {
	c := req.Cluster
	if err := firstError(c.fill(b.handle.informers), fillReplicaSets(b.handle, req.ReplicaSets)); err != nil {
		return response{Error: err.Error()}
	}
	snapshot := cache.NewSnapshot(c.running(), c.Nodes)
	b.handle.lister.now = snapshot
	b.errors = nil
	scorers, err := newScorers(b.handle)
	if err != nil {
		return response{Error: err.Error()}
	}
	nodes := make([]fwk.NodeInfo, 0, len(c.Nodes))
	for _, node := range c.Nodes {
		info, err := snapshot.Get(node.Name)
		if err != nil {
			return response{Error: err.Error()}
		}
		nodes = append(nodes, info)
	}
	scores := make([][]int64, 0, len(req.Pending))
	for _, pod := range req.Pending {
		of, err := b.scoresOf(scorers, pod, nodes)
		if err != nil {
			return response{Error: err.Error()}
		}
		scores = append(scores, of)
	}
	return response{Scores: scores, Errors: b.errors}
}

func (b *pluginRunner) scoresOf(scorers []scorer, pod *v1.Pod, nodes []fwk.NodeInfo) ([]int64, error) {
	totals := make([]int64, len(nodes))
	feasible := []fwk.NodeInfo{}
	indexes := []int{}
	for i, rejecting := range b.perNode(pod, nodes, nil) {
		if len(rejecting) > 0 {
			totals[i] = -1
			continue
		}
		feasible = append(feasible, nodes[i])
		indexes = append(indexes, i)
	}
	for _, one := range scorers {
		scores, err := b.scoreWith(one.plugin, pod, feasible)
		if err != nil {
			return nil, err
		}
		for i, score := range scores {
			totals[indexes[i]] += one.weight * score.Score
		}
	}
	return totals, nil
}

// scoreWith is empty when the plugin skips the pod.
func (b *pluginRunner) scoreWith(plugin fwk.ScorePlugin, pod *v1.Pod, nodes []fwk.NodeInfo) (fwk.NodeScoreList, error) {
	ctx, state := context.Background(), framework.NewCycleState()
	if before, has := plugin.(fwk.PreScorePlugin); has {
		status := before.PreScore(ctx, state, pod, nodes)
		if status.IsSkip() {
			return nil, nil
		}
		if !status.IsSuccess() {
			return nil, fmt.Errorf("%s: %s", plugin.Name(), status.Message())
		}
	}
	scores := make(fwk.NodeScoreList, len(nodes))
	for i, node := range nodes {
		score, status := plugin.Score(ctx, state, pod, node)
		if !status.IsSuccess() {
			return nil, fmt.Errorf("%s: %s", plugin.Name(), status.Message())
		}
		scores[i] = fwk.NodeScore{Name: node.Node().Name, Score: score}
	}
	if extensions := plugin.ScoreExtensions(); extensions != nil {
		if status := extensions.NormalizeScore(ctx, state, pod, scores); !status.IsSuccess() {
			return nil, fmt.Errorf("%s: %s", plugin.Name(), status.Message())
		}
	}
	return scores, nil
}

// fillReplicaSets writes the controllers of pods, by whose selectors pods are spread by default.
func fillReplicaSets(h *handle, all []*appsv1.ReplicaSet) error {
	return replace(h.informers.Apps().V1().ReplicaSets().Informer(), all)
}
