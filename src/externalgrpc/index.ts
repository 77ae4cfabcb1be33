// SPDX-License-Identifier: Apache-2.0
// The front end for the Cluster Autoscaler: its CloudProvider service (one server for every wire generation since 1.25)
// and its expander plugin. It reads the record cache and writes intents. It must not know Proxmox, Kubernetes or the
// config file. Start reading at serve.ts, then provider/cloud-provider.ts.
export {
  type ExternalGrpcOptions,
  type GrpcCall,
  type RunningExternalGrpc,
  serveExternalGrpc,
} from './serve.ts';
export type { ReadText } from './server/certificates.ts';
export { CurrentSettings, type ExternalGrpcSettings } from './settings.ts';
