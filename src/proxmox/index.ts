// SPDX-License-Identifier: Apache-2.0
// Proxmox VE over its REST API, as the Hypervisor port. Owns everything that is peculiar to Proxmox: its
// encodings, its texts, its tasks, which host has which VM. Must not know what the VMs are for, nor sockets
// and timers (those come as Transport and Clock), nor the simulator.
//
// Start reading in hypervisor.ts; request.ts is one API call, translate.ts is where foreign texts end.
export { createProxmoxHypervisor, type ProxmoxOptions } from './hypervisor.ts';
export type { Credentials } from './session.ts';
export { TaskFollower } from './task-follower.ts';
