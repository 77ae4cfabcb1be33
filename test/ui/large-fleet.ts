// SPDX-License-Identifier: Apache-2.0
// A dashboard with 1,000 machines on 40 hosts, whose state changes when the test says so.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  createDashboardApp,
  type DashboardMachine,
  type DashboardState,
  listen,
} from '../../src/http/index.ts';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import { root } from '../support/pvescaler.ts';

export const MACHINES = 1_000;
const HOSTS = 40;
const GIB = 2 ** 30;
const PHASES = ['requested', 'placed', 'creating', 'configuring', 'starting', 'booting', 'joining'];
const START = Date.UTC(2026, 0, 1, 8);

/** The machine number `index` in its phase number `step`; it is ready after the last one. */
function machineOf(index: number, step: number): DashboardMachine {
  const vmId = 1_000 + index;
  const name = `workers-${index.toString(16).padStart(8, '0')}`;
  const phases = [...PHASES, 'ready'].slice(0, step + 1).map((phase, number) => ({
    phase,
    at: START + index * 200 + number * (3_000 + (index % 7) * 500),
  }));
  return {
    id: `00000000-0000-4000-8000-${index.toString(16).padStart(12, '0')}`,
    name,
    pool: index % 2 === 0 ? 'workers' : 'large',
    phase: phases.at(-1)?.phase ?? 'requested',
    phases,
    region: 'lab',
    host: `pve${(index % HOSTS) + 1}`,
    vmId,
    node: name,
    addresses: [`10.0.${index >> 8}.${index & 255}`],
    cpu: 4,
    memoryBytes: 8 * GIB,
    url: `https://pve.example:8006/#v1:0:=qemu%2F${vmId}`,
  };
}

function hostsOf(machines: readonly DashboardMachine[]): DashboardState['hosts'] {
  return Array.from({ length: HOSTS }, (_, index) => ({
    region: 'lab',
    name: `pve${index + 1}`,
    isOnline: true,
    cpus: 64,
    memoryBytes: 512 * GIB,
    reservedBytes: 2 * GIB,
    cpuOvercommit: 2,
    guests: machines
      .filter(({ host }) => host === `pve${index + 1}`)
      .map(({ id, name, vmId = 0, phases }) => ({
        vmId,
        ...(name !== undefined && { name }),
        kind: 'machine' as const,
        machine: id,
        isRunning: phases.length > 5,
        cpus: 4,
        memoryBytes: 8 * GIB,
      })),
  }));
}

function planOf(at: number): NonNullable<DashboardState['plan']> {
  return {
    at,
    steps: [{ kind: 'create', pool: 'workers', reason: '8 machines for 40 pods' }],
    refusals: Array.from({ length: 200 }, (_, index) => ({
      subject: `pod default/huge-${index}`,
      code: 'NO_POOL',
      reason: 'fits no pool: pool workers: cpu: 400 requested, 0 of 4 used',
    })),
  };
}

export interface LargeFleet {
  readonly url: string;
  /** Sends the next state: the machines in `steps` have reached another phase, and everything that hangs on it differs. */
  change(steps: ReadonlyMap<number, number>): Promise<void>;
  close(): Promise<void>;
}

/** All machines are ready, except those of `steps`. */
export async function serveLargeFleet(first: ReadonlyMap<number, number>): Promise<LargeFleet> {
  const steps = new Map(first);
  let [round, machines]: [number, DashboardMachine[]] = [0, []];
  const show = (index: number) => {
    machines[index] = machineOf(index, steps.get(index) ?? PHASES.length);
  };
  for (let index = 0; index < MACHINES; index += 1) show(index);
  const readState = (): Promise<DashboardState> => {
    const at = START + round * 1_000;
    const ready = machines.filter(({ phase }) => phase === 'ready');
    return Promise.resolve({
      at,
      version: '1.0.0',
      mode: 'standalone',
      isDriver: true,
      problems: [],
      hasActions: true,
      hosts: hostsOf(machines),
      pools: ['workers', 'large'].map((name) => ({
        name,
        min: 0,
        max: name === 'large' ? 0 : 600,
        target: 500,
        failed: 0,
        leaving: 0,
        isInConfig: true,
        ready: ready.filter(({ pool }) => pool === name).length,
      })),
      machines,
      pending: Array.from({ length: 500 }, (_, index) => ({
        name: `default/web-${index + round}`,
        where: 'a new machine of pool workers',
      })),
      plan: planOf(at),
      plans: Array.from({ length: 10 }, (_, index) => planOf(START - index * 60_000)),
      journal: Array.from({ length: 100 }, (_, index) => ({
        sequence: 1_000 + round * 10 - index,
        at: at - index * 1_000,
        kind: 'did' as const,
        reason: 'ScaleUp',
        message: `machine ${1_000 + round * 10 - index} of pool workers was requested`,
        subject: { pool: 'workers' },
      })),
      samples: Array.from({ length: 360 }, (_, index) => ({
        at: at - (360 - index) * 5_000,
        pending: index,
        nodes: ready.length,
        requestedCpu: index,
        allocatableCpu: 4_000,
        requestedMemory: index * GIB,
        allocatableMemory: 8_000 * GIB,
      })),
      timesToReady: ready
        .slice(0, 300)
        .map(({ pool, phases }) => ({ at: phases.at(-1)?.at ?? 0, pool, seconds: 30 })),
    });
  };
  const clock = new VirtualClock();
  const app = createDashboardApp({
    readState,
    readFile: (name) => readFile(join(root, 'dist/ui', name), 'utf8'),
    readToken: () => Promise.resolve('token'),
    actions: {
      scalePool: () => Promise.resolve(''),
      pausePool: () => Promise.resolve(''),
      resumePool: () => Promise.resolve(''),
      drainMachine: () => Promise.resolve(''),
      deleteMachine: () => Promise.resolve(''),
    },
    hostNames: [],
    clock,
  });
  const listener = await listen(app, { host: '127.0.0.1', port: 0 }, 'the dashboard');
  return {
    url: listener.url,
    change(changed) {
      round += 1;
      machines = [...machines];
      for (const [index, step] of changed) {
        steps.set(index, step);
        show(index);
      }
      return clock.advance(1_000);
    },
    close: () => listener.close(),
  };
}
