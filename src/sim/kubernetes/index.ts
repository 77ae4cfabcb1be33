// SPDX-License-Identifier: Apache-2.0
export type { Fault, FaultKind } from './faults.ts';
export { type ServedKubernetes, serveKubernetes } from './serve.ts';
export { KubernetesSim, type KubernetesSimOptions } from './sim.ts';
