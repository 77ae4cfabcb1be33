// SPDX-License-Identifier: Apache-2.0
import type { SimRequest } from '../../src/sim/proxmox/index.ts';
import type { Site } from '../fleet/simulated-site.ts';
import { callName } from './call-name.ts';

/** Tells of each call before it is handled. */
export function onCall({ sim }: Site, tell: (call: string) => void): void {
  const handle = sim.handle.bind(sim);
  Object.assign(sim, {
    handle: (request: SimRequest) => {
      tell(callName(request.method, request.target));
      return handle(request);
    },
  });
}
