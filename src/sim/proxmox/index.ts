// SPDX-License-Identifier: Apache-2.0
// A simulated Proxmox VE cluster in one process: hosts, storages, users, tasks, locks, guests, injected faults and
// external changes. It must not import the client; the two share only the table of wire facts. Start reading at
// sim.ts, then http/pipeline.ts.

/** For tests that create their own certificates. */
export * as x509 from '../x509/certificate.ts';
export type { FaultRule } from './control/faults.ts';
export type { Inspection } from './control/inspect.ts';
export type { SavedState } from './control/saved-state.ts';
export type { UrlSource } from './core.ts';
/** For guests that are not simulated and boot from the same seed. */
export { readSeedIso } from './guest/cloud-init/seed.ts';
export { readUserData } from './guest/cloud-init/user-data.ts';
export {
  createGuest,
  type Guest,
  type GuestAgent,
  type GuestBehaviour,
  type GuestInput,
  type GuestReport,
  type OpenConnection,
} from './guest/guest.ts';
export { SimConnectionError, type SimRequest, type SimResponse } from './http/messages.ts';
export { makeCertificate } from './server/certificate.ts';
export {
  type ServedSim,
  type ServeOptions,
  serveProxmoxSim,
} from './server/serve.ts';
export { type ServedSsh, serveSsh } from './server/serve-ssh.ts';
export { startProxmoxSim } from './server/start.ts';
export { createProxmoxSim, type ProxmoxSim, type SimOptions } from './sim.ts';
export { type ClusterDescription, defaultCluster } from './state/cluster-description.ts';
export { SIMULATED_DURATIONS_MS, SIMULATED_TIMEOUTS_MS } from './tasks/durations.ts';
