// SPDX-License-Identifier: Apache-2.0
// The face for the Cluster Autoscaler: its CloudProvider service, every wire generation since 1.25 from one server,
// and its expander plugin. Answers from the fleet's view in memory; writes intents, nothing else. Must not know
// Proxmox, Kubernetes or the config file. Start reading at face.ts, then provider/cloud-provider.ts.
export {
  type ExternalGrpcOptions,
  type GrpcCall,
  type RunningExternalGrpc,
  serveExternalGrpc,
} from './face.ts';
export type { ReadText } from './server/certificates.ts';
export type {
  CapacitySettings,
  FaceSettings,
  GroupSettings,
  OptionSettings,
  Reserve,
} from './settings.ts';
