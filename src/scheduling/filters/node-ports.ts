// SPDX-License-Identifier: Apache-2.0
import { hostPortsConflict } from '../../model/host-port.ts';
import type { Filter } from './filter.ts';

export const nodePorts: Filter = ({ pod }, { placedPods }) => {
  if (pod.hostPorts.length === 0) return undefined;
  for (const placedPod of placedPods) {
    for (const taken of placedPod.pod.hostPorts) {
      const port = pod.hostPorts.find((wanted) => hostPortsConflict(wanted, taken));
      if (port !== undefined) return { filter: 'NodePorts', port };
    }
  }
  return undefined;
};
