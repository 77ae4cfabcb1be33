// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

type volumeRequirements = scheduling.Requirements

// workload is the file that both schedulers read.
type workload struct {
	Offerings []offering    `json:"offerings"`
	Sizes     []size        `json:"sizes"`
	Pods      []*corev1.Pod `json:"pods"`
}

type offering struct {
	Zone         string `json:"zone"`
	CapacityType string `json:"capacityType"`
}

type size struct {
	Name                string  `json:"name"`
	CPUMilli            int64   `json:"cpuMilli"`
	MemoryBytes         int64   `json:"memoryBytes"`
	Pods                int64   `json:"pods"`
	ReservedCPUMilli    int64   `json:"reservedCpuMilli"`
	ReservedMemoryBytes int64   `json:"reservedMemoryBytes"`
	Price               float64 `json:"price"`
}

func readWorkload(path string) (*workload, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	work := &workload{}
	return work, json.Unmarshal(text, work)
}

// freshPods returns copies, because a run changes the pods whose constraints it relaxes.
func (w *workload) freshPods() []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, len(w.Pods))
	for _, pod := range w.Pods {
		pods = append(pods, pod.DeepCopy())
	}
	return pods
}

func (w *workload) pool() *karpenter.NodePool {
	return &karpenter.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: "workers", UID: "workers"},
		Spec: karpenter.NodePoolSpec{
			Limits: karpenter.Limits{
				corev1.ResourceCPU:    resource.MustParse("10000000"),
				corev1.ResourceMemory: resource.MustParse("10000000Gi"),
			},
			Template: karpenter.NodeClaimTemplate{Spec: karpenter.NodeClaimTemplateSpec{
				NodeClassRef: &karpenter.NodeClassReference{Group: "example.invalid", Kind: "Class", Name: "default"},
			}},
		},
	}
}

func (w *workload) instanceTypes() []*cloudprovider.InstanceType {
	types := make([]*cloudprovider.InstanceType, 0, len(w.Sizes))
	for _, each := range w.Sizes {
		types = append(types, w.instanceType(each))
	}
	return types
}

func (w *workload) instanceType(s size) *cloudprovider.InstanceType {
	zones, capacityTypes := []string{}, []string{}
	offerings := cloudprovider.Offerings{}
	for _, offered := range w.Offerings {
		zones = append(zones, offered.Zone)
		capacityTypes = append(capacityTypes, offered.CapacityType)
		offerings = append(offerings, &cloudprovider.Offering{
			Available: true,
			Price:     s.Price,
			Requirements: scheduling.NewLabelRequirements(map[string]string{
				karpenter.CapacityTypeLabelKey: offered.CapacityType,
				corev1.LabelTopologyZone:       offered.Zone,
			}),
		})
	}
	return &cloudprovider.InstanceType{
		Name: s.Name,
		Requirements: scheduling.NewRequirements(
			scheduling.NewRequirement(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, s.Name),
			scheduling.NewRequirement(corev1.LabelArchStable, corev1.NodeSelectorOpIn, "amd64"),
			scheduling.NewRequirement(corev1.LabelOSStable, corev1.NodeSelectorOpIn, "linux"),
			scheduling.NewRequirement(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, zones...),
			scheduling.NewRequirement(karpenter.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, capacityTypes...),
		),
		Offerings: offerings,
		Capacity: corev1.ResourceList{
			corev1.ResourceCPU:    milli(s.CPUMilli),
			corev1.ResourceMemory: whole(s.MemoryBytes),
			corev1.ResourcePods:   whole(s.Pods),
		},
		Overhead: &cloudprovider.InstanceTypeOverhead{KubeReserved: corev1.ResourceList{
			corev1.ResourceCPU:    milli(s.ReservedCPUMilli),
			corev1.ResourceMemory: whole(s.ReservedMemoryBytes),
		}},
	}
}

func milli(amount int64) resource.Quantity { return resource.MustParse(fmt.Sprintf("%dm", amount)) }
func whole(amount int64) resource.Quantity { return *resource.NewQuantity(amount, resource.BinarySI) }
