// SPDX-License-Identifier: Apache-2.0
// Implements the Hypervisor port over the REST API of Proxmox VE. Owns all that is specific to Proxmox: encodings, error
// texts, tasks, and which host runs which VM. Must not know what the VMs are for, nor the simulator. Sockets and timers are
// injected as Transport and Clock. Start reading in hypervisor.ts.
export {
  createProxmoxHypervisor,
  createProxmoxOverSsh,
  type ProxmoxOptions,
} from './hypervisor.ts';
export { createProxmoxInspector, createProxmoxInspectorOverSsh } from './inspector.ts';
export type { Credentials } from './session.ts';
export { TaskFollower } from './tasks.ts';
