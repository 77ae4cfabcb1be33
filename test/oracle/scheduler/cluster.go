// SPDX-License-Identifier: Apache-2.0

package main

import (
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// cluster contains the lists of the API server.
type cluster struct {
	Nodes                  []*v1.Node                      `json:"nodes"`
	Pods                   []*v1.Pod                       `json:"pods"`
	Namespaces             []*v1.Namespace                 `json:"namespaces"`
	PersistentVolumes      []*v1.PersistentVolume          `json:"persistentVolumes"`
	PersistentVolumeClaims []*v1.PersistentVolumeClaim     `json:"persistentVolumeClaims"`
	StorageClasses         []*storagev1.StorageClass       `json:"storageClasses"`
	CSINodes               []*storagev1.CSINode            `json:"csiNodes"`
	CSIDrivers             []*storagev1.CSIDriver          `json:"csiDrivers"`
	CSIStorageCapacities   []*storagev1.CSIStorageCapacity `json:"csiStorageCapacities"`
	VolumeAttachments      []*storagev1.VolumeAttachment   `json:"volumeAttachments"`
}

// running returns the pods in the scheduler's cache: those on a known node that have not ended.
func (c cluster) running() []*v1.Pod {
	known := make(map[string]bool, len(c.Nodes))
	for _, node := range c.Nodes {
		known[node.Name] = true
	}
	pods := make([]*v1.Pod, 0, len(c.Pods))
	for _, pod := range c.Pods {
		ended := pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
		if known[pod.Spec.NodeName] && !ended {
			pods = append(pods, pod)
		}
	}
	return pods
}

// nominated returns the pods for which the scheduler is preempting others, by node.
func (c cluster) nominated() (map[string][]fwk.PodInfo, error) {
	byNode := map[string][]fwk.PodInfo{}
	for _, pod := range c.Pods {
		ended := pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
		if pod.Spec.NodeName != "" || pod.Status.NominatedNodeName == "" || ended {
			continue
		}
		info, err := framework.NewPodInfo(pod)
		if err != nil {
			return nil, err
		}
		byNode[pod.Status.NominatedNodeName] = append(byNode[pod.Status.NominatedNodeName], info)
	}
	return byNode, nil
}

// fill writes the objects to the stores of the plugins' listers. The informers are never started, because
// synchronizing them would take longer than running all plugins.
func (c cluster) fill(factory informers.SharedInformerFactory) error {
	core, storage := factory.Core().V1(), factory.Storage().V1()
	return firstError(
		replace(core.Namespaces().Informer(), c.Namespaces),
		replace(core.PersistentVolumes().Informer(), c.PersistentVolumes),
		replace(core.PersistentVolumeClaims().Informer(), c.PersistentVolumeClaims),
		replace(storage.StorageClasses().Informer(), c.StorageClasses),
		replace(storage.CSINodes().Informer(), c.CSINodes),
		replace(storage.CSIDrivers().Informer(), c.CSIDrivers),
		replace(storage.CSIStorageCapacities().Informer(), c.CSIStorageCapacities),
		replace(storage.VolumeAttachments().Informer(), c.VolumeAttachments),
	)
}

func replace[T any](informer cache.SharedIndexInformer, objects []T) error {
	list := make([]any, 0, len(objects))
	for _, object := range objects {
		list = append(list, object)
	}
	return informer.GetIndexer().Replace(list, "")
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
