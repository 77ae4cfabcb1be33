// SPDX-License-Identifier: Apache-2.0
export { createAuthority } from './authority.ts';
export { FAKE_NODE_ANNOTATION } from './controllers/fake-kubelet.ts';
export type { ControllerOptions } from './controllers/index.ts';
export type { Fault, FaultKind } from './faults.ts';
export type { Peer } from './http/app.ts';
export { userOfCertificate } from './http/authentication.ts';
export { type ServedKubernetes, serveKubernetes } from './serve.ts';
export { KubernetesSim, type KubernetesSimOptions } from './sim.ts';
export { type RunningKubernetes, startKubernetesSim } from './start.ts';
