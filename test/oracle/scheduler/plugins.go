// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/featuregate"
	corev1 "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
)

// filters run in this order, which is also the order of the plugins in a response.
var filters = []string{
	names.NodeUnschedulable,
	names.NodeName,
	names.TaintToleration,
	names.NodeAffinity,
	names.NodeDeclaredFeatures,
	names.NodePorts,
	names.NodeResourcesFit,
	names.VolumeRestrictions,
	names.NodeVolumeLimits,
	names.VolumeBinding,
	names.VolumeZone,
	names.PodTopologySpread,
	names.InterPodAffinity,
}

// sequential replaces the scheduler's worker pool: for few nodes, starting workers costs more than the work.
type sequential struct{}

func (sequential) Until(_ context.Context, pieces int, work workqueue.DoWorkPieceFunc, _ string) {
	for i := range pieces {
		work(i)
	}
}

// handle implements the part of the scheduler that the filter plugins use; the rest is nil.
type handle struct {
	fwk.Handle
	lister    *swappable
	informers informers.SharedInformerFactory
	client    kubernetes.Interface
	csi       fwk.CSIManager
	parallel  fwk.Parallelizer
}

func (h *handle) SnapshotSharedLister() fwk.SharedLister                 { return h.lister }
func (h *handle) SharedInformerFactory() informers.SharedInformerFactory { return h.informers }
func (h *handle) ClientSet() kubernetes.Interface                        { return h.client }
func (h *handle) SharedCSIManager() fwk.CSIManager                       { return h.csi }
func (h *handle) SharedDRAManager() fwk.SharedDRAManager                 { return nil }
func (h *handle) Parallelizer() fwk.Parallelizer                         { return h.parallel }

// swappable lets plugins that keep their initial lister read the next cluster.
type swappable struct{ now *cache.Snapshot }

func (s *swappable) NodeInfos() fwk.NodeInfoLister           { return s.now.NodeInfos() }
func (s *swappable) StorageInfos() fwk.StorageInfoLister     { return s.now.StorageInfos() }
func (s *swappable) PodGroupStates() fwk.PodGroupStateLister { return s.now.PodGroupStates() }

// pluginRunner holds the plugins, with default arguments.
type pluginRunner struct {
	handle  *handle
	plugins []fwk.FilterPlugin
	errors  []string
}

// dependents must be off where the gate that they depend on is off. No filter plugin reads them when it is created.
var dependents = map[string][]string{
	"NodeDeclaredFeatures": {
		"ExtendWebSocketsToKubelet",
		"InPlacePodLevelResourcesVerticalScaling",
		"InPlacePodVerticalScalingInitContainers",
		"RestartAllContainersOnContainerExits",
	},
}

// newPluginRunner creates the plugins with these feature gates; others have the release's defaults. Plugins read the gates
// only when they are created.
func newPluginRunner(parallel fwk.Parallelizer, gates map[string]bool) (*pluginRunner, error) {
	all := map[string]bool{}
	for name, enabled := range gates {
		all[name] = enabled
		for _, dependent := range dependents[name] {
			all[dependent] = enabled
		}
	}
	gate := utilfeature.DefaultMutableFeatureGate
	defaults := map[string]bool{}
	for name := range all {
		defaults[name] = gate.Enabled(featuregate.Feature(name))
	}
	if err := gate.SetFromMap(all); err != nil {
		return nil, err
	}
	defer gate.SetFromMap(defaults)
	return createPlugins(parallel)
}

func createPlugins(parallel fwk.Parallelizer) (*pluginRunner, error) {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://nowhere.invalid"})
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	b := &pluginRunner{handle: &handle{
		lister:    &swappable{now: cache.NewEmptySnapshot()},
		informers: factory,
		client:    client,
		csi:       nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister()),
		parallel:  parallel,
	}}
	return b, b.loadPlugins()
}

func (b *pluginRunner) loadPlugins() error {
	defaults, err := latest.Default()
	if err != nil {
		return err
	}
	arguments := map[string]runtime.Object{}
	for _, entry := range defaults.Profiles[0].PluginConfig {
		arguments[entry.Name] = entry.Args
	}
	registry := plugins.NewInTreeRegistry()
	for _, name := range filters {
		plugin, err := registry[name](context.Background(), arguments[name], b.handle)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		b.plugins = append(b.plugins, plugin.(fwk.FilterPlugin))
	}
	return nil
}

// filterRun is one pod in one plugin: the result of PreFilter, then Filter node by node.
type filterRun struct {
	plugin   fwk.FilterPlugin
	state    fwk.CycleState
	skipped  bool
	rejected bool
	only     *fwk.PreFilterResult
}

func (b *pluginRunner) preFilter(plugin fwk.FilterPlugin, pod *v1.Pod, nodes []fwk.NodeInfo) filterRun {
	h := filterRun{plugin: plugin, state: framework.NewCycleState()}
	before, has := plugin.(fwk.PreFilterPlugin)
	if !has {
		return h
	}
	only, status := before.PreFilter(context.Background(), h.state, pod, nodes)
	h.only = only
	h.skipped = status.IsSkip()
	h.rejected = !h.skipped && !status.IsSuccess()
	b.recordError(plugin, pod, status)
	return h
}

func (b *pluginRunner) rejects(h filterRun, pod *v1.Pod, node fwk.NodeInfo) bool {
	if h.skipped || h.rejected {
		return h.rejected
	}
	if h.only != nil && !h.only.AllNodes() && !h.only.NodeNames.Has(node.Node().Name) {
		return true
	}
	status := h.plugin.Filter(context.Background(), h.state, pod, node)
	b.recordError(h.plugin, pod, status)
	return !status.IsSuccess()
}

func (b *pluginRunner) recordError(plugin fwk.FilterPlugin, pod *v1.Pod, status *fwk.Status) {
	if status.Code() == fwk.Error {
		b.errors = append(b.errors, fmt.Sprintf("%s on %s/%s: %s", plugin.Name(), pod.Namespace, pod.Name, status.Message()))
	}
}

func (b *pluginRunner) everyNode(c cluster, pending []*v1.Pod) response {
	if err := c.fill(b.handle.informers); err != nil {
		return response{Error: err.Error()}
	}
	snapshot := cache.NewSnapshot(c.running(), c.Nodes)
	b.handle.lister.now = snapshot
	b.errors = nil
	nodes := make([]fwk.NodeInfo, 0, len(c.Nodes))
	for _, node := range c.Nodes {
		info, err := snapshot.Get(node.Name)
		if err != nil {
			return response{Error: err.Error()}
		}
		nodes = append(nodes, info)
	}
	nominated, err := c.nominated()
	if err != nil {
		return response{Error: err.Error()}
	}
	rejections := make([][][]string, 0, len(pending))
	for _, pod := range pending {
		rejections = append(rejections, b.perNode(pod, nodes, nominated))
	}
	return response{Rejections: rejections, Errors: b.errors}
}

// perNode checks each node as RunFilterPluginsWithNominatedPods does: with the nominated pods of equal or higher priority,
// then, if every plugin accepts, without them.
func (b *pluginRunner) perNode(pod *v1.Pod, nodes []fwk.NodeInfo, nominated map[string][]fwk.PodInfo) [][]string {
	with, without := emptyLists(len(nodes)), emptyLists(len(nodes))
	for _, plugin := range b.plugins {
		h := b.preFilter(plugin, pod, nodes)
		for i, node := range nodes {
			if rivals := rivalsOf(pod, nominated[node.Node().Name]); len(rivals) > 0 && b.rejectsWith(h, pod, node, rivals) {
				with[i] = append(with[i], plugin.Name())
			}
			if b.rejects(h, pod, node) {
				without[i] = append(without[i], plugin.Name())
			}
		}
	}
	for i := range with {
		if len(with[i]) == 0 {
			with[i] = without[i]
		}
	}
	return with
}

func emptyLists(count int) [][]string {
	lists := make([][]string, count)
	for i := range lists {
		lists[i] = []string{}
	}
	return lists
}

func rivalsOf(pod *v1.Pod, nominated []fwk.PodInfo) []fwk.PodInfo {
	rivals := []fwk.PodInfo{}
	for _, other := range nominated {
		if corev1.PodPriority(other.GetPod()) >= corev1.PodPriority(pod) && other.GetPod().UID != pod.UID {
			rivals = append(rivals, other)
		}
	}
	return rivals
}

// rejectsWith mirrors addGENominatedPods of the framework.
func (b *pluginRunner) rejectsWith(h filterRun, pod *v1.Pod, node fwk.NodeInfo, rivals []fwk.PodInfo) bool {
	if h.skipped || h.rejected {
		return h.rejected
	}
	full := node.Snapshot()
	added := h
	added.state = h.state.Clone()
	for _, rival := range rivals {
		full.AddPodInfo(rival)
		before, has := h.plugin.(fwk.PreFilterPlugin)
		if !has || before.PreFilterExtensions() == nil {
			continue
		}
		if status := before.PreFilterExtensions().AddPod(context.Background(), added.state, pod, rival, full); !status.IsSuccess() {
			b.recordError(h.plugin, pod, status)
			return true
		}
	}
	return b.rejects(added, pod, full)
}
