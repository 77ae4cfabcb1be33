// SPDX-License-Identifier: Apache-2.0

// Runs Karpenter's scheduler on a workload file and prints the times of each run and the planned capacity as JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"

	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/operator/options"
)

// result contains the times of all runs and the capacity planned by the last run.
type result struct {
	Seconds     []float64 `json:"seconds"`
	CPUSeconds  []float64 `json:"cpuSeconds"`
	Nodes       int       `json:"nodes"`
	CPUMilli    int64     `json:"cpuMilli"`
	MemoryBytes int64     `json:"memoryBytes"`
	Unplaced    int       `json:"unplaced"`
}

func main() {
	log.SetLogger(logging.NopLogger)
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: karpenter WORKLOAD.json ROUNDS"))
	}
	work, err := readWorkload(os.Args[1])
	if err != nil {
		fail(err)
	}
	runs, err := strconv.Atoi(os.Args[2])
	if err != nil {
		fail(err)
	}
	res := result{}
	for range runs {
		if err := res.run(work); err != nil {
			fail(err)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(res); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func (r *result) run(work *workload) error {
	ctx := options.ToContext(injection.WithControllerName(context.Background(), "provisioner"), &options.Options{
		CPURequests:       5000,
		PreferencePolicy:  options.PreferencePolicyRespect,
		MinValuesPolicy:   options.MinValuesPolicyStrict,
		IgnoreDRARequests: true,
		FeatureGates:      options.FeatureGates{ReservedCapacity: true},
	})
	pods := work.freshPods()
	scheduler, err := newScheduler(ctx, work, pods)
	if err != nil {
		return err
	}
	runtime.GC()
	started, cpu := time.Now(), cpuSeconds()
	found, err := scheduler.Solve(ctx, pods)
	r.Seconds = append(r.Seconds, time.Since(started).Seconds())
	r.CPUSeconds = append(r.CPUSeconds, cpuSeconds()-cpu)
	if err != nil {
		return err
	}
	r.Nodes, r.CPUMilli, r.MemoryBytes, r.Unplaced = len(found.NewNodeClaims), 0, 0, len(found.PodErrors)
	for _, claim := range found.NewNodeClaims {
		chosen := cheapest(claim.InstanceTypeOptions)
		r.CPUMilli += chosen.Capacity.Cpu().MilliValue()
		r.MemoryBytes += chosen.Capacity.Memory().Value()
	}
	return nil
}

// cpuSeconds is the CPU time of the process, in all threads.
func cpuSeconds() float64 {
	usage := syscall.Rusage{}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		fail(err)
	}
	total := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	return total.Seconds()
}

// cheapest returns the size that would be requested from the cloud: the claim lists every size that fits.
func cheapest(sizes cloudprovider.InstanceTypes) *cloudprovider.InstanceType {
	chosen := sizes[0]
	for _, size := range sizes[1:] {
		if size.Offerings.Cheapest().Price < chosen.Offerings.Cheapest().Price {
			chosen = size
		}
	}
	return chosen
}

func newScheduler(ctx context.Context, work *workload, pods []*corev1.Pod) (*scheduling.Scheduler, error) {
	client := fake.NewClientBuilder().Build()
	cluster := state.NewCluster(clock.RealClock{}, client, nil)
	pool := work.pool()
	pools := []*karpenter.NodePool{pool}
	sizes := map[string][]*cloudprovider.InstanceType{pool.Name: work.instanceTypes()}
	concurrency := scheduling.NumConcurrentReconciles(5)
	topology, err := scheduling.NewTopology(ctx, client, cluster, nil, pools, sizes, pods, concurrency)
	if err != nil {
		return nil, err
	}
	recorder := events.NewRecorder(&record.FakeRecorder{})
	var volumes map[types.UID][]volumeRequirements
	return scheduling.NewScheduler(ctx, client, pools, cluster, nil, topology, sizes, nil, recorder, clock.RealClock{}, volumes, nil, concurrency), nil
}
