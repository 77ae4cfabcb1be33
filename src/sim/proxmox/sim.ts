// SPDX-License-Identifier: Apache-2.0
// Joins the parts of a simulated cluster and hands out what callers and tests need of it.
import type { Clock } from '../../ports/clock.ts';
import type { Random } from '../../ports/random.ts';
import type { ApiVersion } from '../../proxmox/wire-facts/index.ts';
import { AccessChecks } from './access/checks.ts';
import { Permissions } from './access/permissions.ts';
import { Sessions } from './access/sessions.ts';
import { criticalPathMs } from './control/critical-path.ts';
import { Faults } from './control/faults.ts';
import { type Inspection, inspectCore } from './control/inspect.ts';
import { Meddler } from './control/meddler.ts';
import { restoreState, type SimState, stateOf } from './control/state.ts';
import type { Core, UrlSource } from './core.ts';
import type { Guest, OpenConnection } from './guest/guest.ts';
import type { SimRequest, SimResponse } from './http/messages.ts';
import { Pipeline } from './http/pipeline.ts';
import { TaskEngine } from './tasks/engine.ts';
import { Locks } from './tasks/locks.ts';
import { makeTemplate } from './vm/disk-work.ts';
import { powerOn } from './vm/guest-link.ts';
import { applyPending } from './vm/pending.ts';
import { buildWorld } from './world/build.ts';
import type { ClusterDescription } from './world/description.ts';

export interface SimOptions {
  readonly cluster: ClusterDescription;
  readonly clock: Clock;
  readonly random: Random;
  /** 1 = as slow as a real one; 60 = a minute in a second. */
  readonly speed?: number;
  readonly version?: ApiVersion;
  /** Where downloads come from that the description does not have; absent = nowhere. */
  readonly urlSource?: UrlSource;
  /** How guests reach the Kubernetes server that their user-data names; absent = a join is recorded only. */
  readonly connect?: OpenConnection;
}

export interface ProxmoxSim {
  readonly version: ApiVersion;
  /** One request. Rejects with SimConnectionError when no answer comes. */
  handle(request: SimRequest): Promise<SimResponse>;
  readonly faults: Faults;
  readonly meddler: Meddler;
  inspect(): Inspection;
  /** The least time in which the machines that run now could have been made, with so many creations per host. */
  criticalPathMs(creationsPerHost: number): number;
  /** The guest in a running VM. */
  guest(vmId: number): Guest | undefined;
  /** Everything, as JSON can hold it. */
  saveState(): SimState;
  /** Takes the place of what is there. Running VMs boot again. */
  loadState(state: SimState): void;
}

function makeCore(options: SimOptions): { readonly core: Core; readonly faults: Faults } {
  const { clock, random, speed = 1 } = options;
  const version = options.version ?? options.cluster.version ?? '9.2';
  const { world, running, templates } = buildWorld(options.cluster, {
    clock,
    random,
    speed,
    version,
  });
  const permissions = new Permissions(world);
  const tasks = new TaskEngine(clock, speed);
  const faults = new Faults(random);
  const core: Core = {
    world,
    tasks,
    locks: new Locks(clock),
    permissions,
    access: new AccessChecks(world, permissions),
    sessions: new Sessions(world),
    urlSource: options.urlSource ?? (() => Promise.resolve(undefined)),
    connect: options.connect,
  };
  tasks.setHook((order) => {
    const vmId = Number(order.id) || undefined;
    const target = { host: order.host, vmId, taskType: order.type };
    const fault = faults.take(['task-fails', 'task-killed'], target);
    if (fault === undefined) return undefined;
    const killed = fault.kind === 'task-killed';
    const message = fault.message ?? (killed ? 'unexpected status' : 'simulated task failure');
    return { afterMs: fault.delayMs ?? 0, message, killed };
  });
  for (const vm of templates) makeTemplate(core, vm);
  for (const vm of running) powerOn(core, vm, applyPending);
  return { core, faults };
}

/** A simulated cluster without sockets; `serveProxmoxSim` puts one on the network. */
export function createProxmoxSim(options: SimOptions): ProxmoxSim {
  const { core, faults } = makeCore(options);
  const meddler = new Meddler(core);
  const requests = new Map<string, number>();
  const pipeline = new Pipeline(core, {
    faults,
    hostDown: (host) => meddler.hostDown(host),
    seen: (endpoint, status) => {
      const key = `${endpoint} ${status}`;
      requests.set(key, (requests.get(key) ?? 0) + 1);
    },
  });
  return {
    version: core.world.version,
    handle: (request) => pipeline.handle(request),
    faults,
    meddler,
    inspect: () => inspectCore(core, requests),
    criticalPathMs: (creationsPerHost) => criticalPathMs(core, creationsPerHost),
    guest: (vmId) => core.world.vms.get(vmId)?.running?.guest,
    saveState: () => stateOf(core),
    loadState: (state) => restoreState(core, state),
  };
}
