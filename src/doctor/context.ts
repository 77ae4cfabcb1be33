// SPDX-License-Identifier: Apache-2.0
import type { Config, RegionConfig } from '../config/index.ts';
import type { Clock } from '../ports/clock.ts';
import type { ClusterInspector, RegionInspector } from '../ports/inspection.ts';
import type { SetupAdapters, SetupContext } from '../setup/index.ts';

export interface ProbeOptions {
  /** Verifies the server with this CA. Absent: the server is not verified, and must not receive a secret. */
  readonly caPem?: string;
  /** Value of the Authorization header; only with `caPem`. */
  readonly authorization?: string;
  readonly signal: AbortSignal;
}

export interface DoctorAdapters extends Pick<SetupAdapters, 'readSecret' | 'readUrl'> {
  /** Reads the region's secrets; sends no request yet. */
  inspectProxmox(region: RegionConfig, cluster: Config['cluster']): Promise<RegionInspector>;
  /** Undefined outside a pod when no kubeconfig is configured or found. Sends no request yet. */
  inspectKubernetes(cluster: Config['cluster']): Promise<ClusterInspector | undefined>;
  /** Any response of an HTTPS server. */
  probe(
    url: string,
    options: ProbeOptions,
  ): Promise<{ readonly status: number; readonly body: string }>;
}

export interface DoctorContext extends Pick<SetupContext, 'environment' | 'files'> {
  readonly clock: Clock;
  readonly adapters: DoctorAdapters;
}
