// SPDX-License-Identifier: Apache-2.0
import { portsCollide } from '../../model/host-port.ts';
import type { Filter } from './filter.ts';

export const nodePorts: Filter = ({ pod }, { residents }) => {
  if (pod.hostPorts.length === 0) return undefined;
  for (const resident of residents) {
    for (const taken of resident.pod.hostPorts) {
      const port = pod.hostPorts.find((wanted) => portsCollide(wanted, taken));
      if (port !== undefined) return { filter: 'NodePorts', port };
    }
  }
  return undefined;
};
