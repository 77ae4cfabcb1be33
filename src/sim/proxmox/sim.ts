// SPDX-License-Identifier: Apache-2.0
// Assembles a simulated cluster and exposes what clients and tests need.
import type { Clock } from '../../ports/clock.ts';
import type { Random } from '../../ports/random.ts';
import type { ApiVersion } from '../../proxmox/wire-facts/index.ts';
import { AccessChecks } from './access/checks.ts';
import { Permissions } from './access/permissions.ts';
import { Sessions } from './access/sessions.ts';
import { criticalPathMs } from './control/critical-path.ts';
import { ExternalChanges } from './control/external-changes.ts';
import { Faults } from './control/faults.ts';
import { type Inspection, inspectCluster } from './control/inspect.ts';
import { captureState, restoreState, type SavedState } from './control/saved-state.ts';
import type { Core, UrlSource } from './core.ts';
import { createGuest, type Guest, type GuestInput, type OpenConnection } from './guest/guest.ts';
import type { SimRequest, SimResponse } from './http/messages.ts';
import { RequestPipeline } from './http/pipeline.ts';
import { HostShell } from './shell/host-shell.ts';
import { buildClusterState } from './state/build-cluster-state.ts';
import type { ClusterDescription } from './state/cluster-description.ts';
import { TaskEngine } from './tasks/engine.ts';
import { Locks } from './tasks/locks.ts';
import { convertToTemplate } from './vm/disk-tasks.ts';
import { powerOn } from './vm/guest-lifecycle.ts';
import { applyPending } from './vm/pending.ts';

export interface SimOptions {
  readonly cluster: ClusterDescription;
  readonly clock: Clock;
  readonly random: Random;
  /** 1 = real time; 60 = a minute in a second. */
  readonly speed?: number;
  readonly version?: ApiVersion;
  /** Source of downloads for URLs that the description lacks; absent = they are unreachable. */
  readonly urlSource?: UrlSource;
  /** How guests connect to the Kubernetes server in their user-data; absent = a join is only recorded. */
  readonly connect?: OpenConnection;
  /** What runs in a VM that is powered on; absent = a simulated guest. */
  readonly createGuest?: (input: GuestInput) => Guest;
}

export interface ProxmoxSim {
  readonly version: ApiVersion;
  /** Handles one request. Rejects with SimConnectionError when the connection fails. */
  handle(request: SimRequest): Promise<SimResponse>;
  /** The shell of root on a host, as over SSH. */
  shell(host: string): HostShell;
  readonly faults: Faults;
  readonly externalChanges: ExternalChanges;
  inspect(): Inspection;
  /** Lower bound of the time to create the VMs that run now, with this many concurrent creations per host. */
  criticalPathMs(creationsPerHost: number): number;
  /** The guest of a running VM. */
  guest(vmId: number): Guest | undefined;
  /** The whole state as a JSON-compatible value. */
  saveState(): SavedState;
  /** Replaces the current state. Running VMs boot again. */
  loadState(state: SavedState): void;
}

function createCore(options: SimOptions): { readonly core: Core; readonly faults: Faults } {
  const { clock, random, speed = 1 } = options;
  const version = options.version ?? options.cluster.version ?? '9.2';
  const { state, running, templates } = buildClusterState(options.cluster, {
    clock,
    random,
    speed,
    version,
  });
  const permissions = new Permissions(state);
  const tasks = new TaskEngine(clock, speed);
  const faults = new Faults(random);
  const core: Core = {
    faults,
    state,
    tasks,
    locks: new Locks(clock),
    permissions,
    access: new AccessChecks(state, permissions),
    sessions: new Sessions(state),
    urlSource: options.urlSource ?? (() => Promise.resolve(undefined)),
    connect: options.connect,
    createGuest: options.createGuest ?? createGuest,
  };
  tasks.setFaultInjector((order) => {
    const vmId = Number(order.id) || undefined;
    const target = { host: order.host, vmId, taskType: order.type };
    const fault = faults.take(['task-fails', 'task-killed'], target);
    if (fault === undefined) return undefined;
    const killed = fault.kind === 'task-killed';
    const message = fault.message ?? (killed ? 'unexpected status' : 'simulated task failure');
    return { afterMs: fault.delayMs ?? 0, message, killed };
  });
  for (const vm of templates) convertToTemplate(core, vm);
  for (const vm of running) powerOn(core, vm, applyPending);
  return { core, faults };
}

/** A simulated cluster without sockets; `serveProxmoxSim` serves it over HTTP. */
export function createProxmoxSim(options: SimOptions): ProxmoxSim {
  const { core, faults } = createCore(options);
  const externalChanges = new ExternalChanges(core);
  const requests = new Map<string, number>();
  const pipeline = new RequestPipeline(core, {
    faults,
    hostDown: (host) => externalChanges.hostDown(host),
    onResponse: (endpoint, status) => {
      const key = `${endpoint} ${status}`;
      requests.set(key, (requests.get(key) ?? 0) + 1);
    },
  });
  const shells = new Map<string, HostShell>();
  return {
    version: core.state.version,
    handle: (request) => pipeline.handle(request),
    shell: (host) => {
      const shell = shells.get(host) ?? new HostShell(core, pipeline, host);
      shells.set(host, shell);
      return shell;
    },
    faults,
    externalChanges,
    inspect: () => inspectCluster(core, requests),
    criticalPathMs: (creationsPerHost) => criticalPathMs(core, creationsPerHost),
    guest: (vmId) => core.state.vms.get(vmId)?.running?.guest,
    saveState: () => captureState(core),
    loadState: (state) => restoreState(core, state),
  };
}
