// SPDX-License-Identifier: Apache-2.0
// The defaults that the API server adds to a pod when it is created, as far as they decide where it can run. Pod
// templates do not have them.

import type { PortSource } from './host-port.ts';
import type { ContainerSource, PodSpecSource, QuantityMap, ResourcesSource } from './pod-source.ts';

export function withPodDefaults(spec: PodSpecSource): PodSpecSource {
  const isOnHostNetwork = spec.hostNetwork === true;
  const containers = (spec.containers ?? []).map((one) => withDefaults(one, isOnHostNetwork));
  const initContainers = (spec.initContainers ?? []).map((one) =>
    withDefaults(one, isOnHostNetwork),
  );
  return {
    ...spec,
    containers,
    initContainers,
    ...(spec.resources && {
      resources: withPodLevelDefaults(spec.resources, [...containers, ...initContainers]),
    }),
  };
}

// A limit without a request is also the request.
function withDefaults(container: ContainerSource, isOnHostNetwork: boolean): ContainerSource {
  const { resources, ports } = container;
  return {
    ...container,
    ...(resources?.limits && {
      resources: { ...resources, requests: { ...resources.limits, ...resources.requests } },
    }),
    ...(ports && isOnHostNetwork && { ports: ports.map(withHostPort) }),
  };
}

function withHostPort(port: PortSource): PortSource {
  return port.hostPort ? port : { ...port, hostPort: port.containerPort ?? 0 };
}

// A limit of the whole pod is its request, unless containers request the resource. Huge pages cannot be
// overcommitted, so for them the limit counts in any case.
function withPodLevelDefaults(
  resources: ResourcesSource,
  containers: readonly ContainerSource[],
): ResourcesSource {
  const requested = new Set(
    containers.flatMap((one) => Object.keys(one.resources?.requests ?? {})),
  );
  const limits: QuantityMap = Object.fromEntries(
    Object.entries(resources.limits ?? {}).filter(
      ([name]) => name.startsWith('hugepages-') || !requested.has(name),
    ),
  );
  return { ...resources, requests: { ...limits, ...resources.requests } };
}
