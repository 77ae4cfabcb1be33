// SPDX-License-Identifier: Apache-2.0
// The client over SSH and the simulator in one process, on virtual time, without sockets.
import type { Clock } from '../../src/ports/clock.ts';
import { Cancelled, TimedOut, Unreachable } from '../../src/ports/errors.ts';
import { advanceUntilSettled } from '../../src/ports/fakes/advance-until-settled.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import type { Hypervisor } from '../../src/ports/hypervisor.ts';
import type { RemoteCommand, RemoteShell } from '../../src/ports/remote-shell.ts';
import { createProxmoxOverSsh } from '../../src/proxmox/index.ts';
import {
  createProxmoxSim,
  type ProxmoxSim,
  SimConnectionError,
  type SimOptions,
} from '../../src/sim/proxmox/index.ts';
import { threeHostCluster } from './simulated-region.ts';

export interface SshRegion {
  readonly sim: ProxmoxSim;
  readonly clock: VirtualClock;
  readonly hypervisor: Hypervisor;
  readonly settled: <T>(work: Promise<T>) => Promise<T>;
  /** Every command line with its input. */
  readonly commands: { readonly host: string; readonly command: string; readonly input: string }[];
}

export function sshRegion(
  options: Partial<Omit<SimOptions, 'clock'>> = {},
  hosts: readonly string[] = ['pve1', 'pve2', 'pve3'],
): SshRegion {
  const clock = new VirtualClock();
  const sim = createProxmoxSim({
    cluster: threeHostCluster(),
    random: new SeededRandom(11),
    ...options,
    clock,
  });
  const commands: SshRegion['commands'] = [];
  const hypervisor = createProxmoxOverSsh({
    region: 'sim',
    hosts: hosts.map((hostname) => ({
      hostname,
      port: 22,
      shell: simulatedShell({
        sim,
        clock,
        host: hostname,
        onCommand: (each) => commands.push(each),
      }),
    })),
    clock,
    random: new SeededRandom(12),
  });
  return { sim, clock, hypervisor, settled: (work) => advanceUntilSettled(clock, work), commands };
}

interface SimulatedShell {
  readonly sim: ProxmoxSim;
  readonly clock: Clock;
  readonly host: string;
  readonly onCommand: (command: SshRegion['commands'][number]) => void;
}

function simulatedShell({ sim, clock, host, onCommand }: SimulatedShell): RemoteShell {
  let isClosed = false;
  const limited = async <T>(
    call: Pick<RemoteCommand, 'timeoutMs' | 'signal'>,
    work: Promise<T>,
  ) => {
    if (isClosed || call.signal?.aborted === true) {
      work.catch(() => undefined);
      throw new Cancelled('CANCELLED', 'closed', { facts: { requestSent: false } });
    }
    const done = new AbortController();
    const late = clock.sleep(call.timeoutMs, { signal: done.signal }).then(() => {
      throw new TimedOut('REQUEST_TIMED_OUT', `${host}: late`, { facts: { requestSent: true } });
    });
    late.catch(() => undefined);
    try {
      return await Promise.race([work, late]);
    } catch (error) {
      if (!(error instanceof SimConnectionError)) throw error;
      throw new Unreachable('PVE_UNREACHABLE', `${host}: ${error.code}`, {
        facts: { requestSent: error.code !== 'ECONNREFUSED' },
      });
    } finally {
      done.abort();
    }
  };
  return {
    address: host,
    run: async ({ command, input = '', ...call }) => {
      const text = typeof input === 'string' ? input : new TextDecoder().decode(input);
      onCommand({ host, command, input: text });
      const run = sim.shell(host).run({ command, input: text });
      const { code, out, err } = await limited(call, run);
      return { exitCode: code, output: out, errorOutput: err };
    },
    writeFile: async ({ path, bytes }) => sim.shell(host).writeFile(path, bytes, '0600'),
    removeFile: async ({ path }) => void sim.shell(host).removeFile(path),
    close: async () => {
      isClosed = true;
    },
  };
}
