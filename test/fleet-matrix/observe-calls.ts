// SPDX-License-Identifier: Apache-2.0
import type { SimRequest } from '../../src/sim/proxmox/index.ts';
import type { Site } from '../fleet/simulated-site.ts';
import { callName } from './call-name.ts';

/** Calls `onCall` with each request before the simulator handles it. */
export function observeCalls({ sim }: Site, onCall: (call: string) => void): void {
  const handle = sim.handle.bind(sim);
  Object.assign(sim, {
    handle: (request: SimRequest) => {
      onCall(callName(request.method, request.target));
      return handle(request);
    },
  });
}
