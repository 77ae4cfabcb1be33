// SPDX-License-Identifier: Apache-2.0
// A simulated guest: boots on the Clock, reads its seed, answers the agent, ends or hangs. Owns what happens
// inside one VM; knows nothing of hosts, storages, tasks or the API around it.
import { GUEST_BOOT_DURATIONS } from './boot-durations.ts';
import type {
  Guest,
  GuestAgent,
  GuestExecStatus,
  GuestInput,
  GuestNetworkInterface,
  GuestOsInfo,
  GuestPhase,
  GuestReport,
} from './guest-types.ts';

export { GUEST_BOOT_DURATIONS } from './boot-durations.ts';
export type * from './guest-types.ts';

export function createGuest(input: GuestInput): Guest {
  return new SimulatedGuest(input);
}

class SimulatedGuest implements Guest, GuestAgent {
  readonly #input: GuestInput;
  readonly #listeners = new Set<() => void>();
  #phase: GuestPhase = 'off';
  #poweredOff = false;
  #power: AbortController | undefined;
  #boots = 0;
  #pid = 1000;
  readonly #exits = new Map<number, GuestExecStatus>();

  constructor(input: GuestInput) {
    this.#input = input;
  }

  get agent(): GuestAgent {
    return this;
  }

  get poweredOff(): boolean {
    return this.#poweredOff;
  }

  start(): void {
    if (this.#power !== undefined) return;
    this.#poweredOff = false;
    this.#power = new AbortController();
    void this.#boot(this.#power.signal);
  }

  stop(): void {
    this.#power?.abort();
    this.#power = undefined;
    this.#exits.clear();
    this.#enter('off');
  }

  async requestShutdown(): Promise<boolean> {
    const power = this.#power;
    if (power === undefined || this.#phase !== 'running') return false;
    if (this.#input.behaviour === 'ignores-shutdown') return false;
    this.#enter('shutting-down');
    if (!(await this.#pass(GUEST_BOOT_DURATIONS.shutdown, power.signal))) return false;
    this.stop();
    this.#poweredOff = true;
    return true;
  }

  agentAnswers(): boolean {
    const { agentEnabled, behaviour } = this.#input;
    return agentEnabled && behaviour !== 'no-agent' && this.#phase === 'running';
  }

  ping(): void {
    if (!this.agentAnswers()) throw new Error('QEMU guest agent is not running');
  }

  networkGetInterfaces(): GuestNetworkInterface[] {
    this.ping();
    const loopback = { 'ip-address-type': 'ipv4', 'ip-address': '127.0.0.1', prefix: 8 } as const;
    const nics = this.#input.interfaces.map((nic, index): GuestNetworkInterface => {
      const [address = '', prefix = '24'] = this.#input
        .leaseAddress(nic.mac, nic.bridge)
        .split('/');
      return {
        name: `ens${18 + index}`,
        'hardware-address': nic.mac.toLowerCase(),
        'ip-addresses': [
          { 'ip-address-type': 'ipv4', 'ip-address': address, prefix: Number(prefix) },
        ],
      };
    });
    return [
      { name: 'lo', 'hardware-address': '00:00:00:00:00:00', 'ip-addresses': [loopback] },
      ...nics,
    ];
  }

  getHostName(): { 'host-name': string } {
    this.ping();
    return { 'host-name': 'ubuntu' };
  }

  getOsInfo(): GuestOsInfo {
    this.ping();
    return {
      id: 'ubuntu',
      name: 'Ubuntu',
      'pretty-name': 'Ubuntu 24.04 LTS',
      version: '24.04 LTS (Noble Numbat)',
      'version-id': '24.04',
      'kernel-release': '6.8.0-60-generic',
      'kernel-version': '#63-Ubuntu SMP',
      machine: 'x86_64',
    };
  }

  exec(_command: readonly string[], _input?: string): number {
    this.ping();
    this.#pid += 1;
    this.#exits.set(this.#pid, { exited: 1, exitcode: 0 });
    return this.#pid;
  }

  execStatus(pid: number): GuestExecStatus {
    this.ping();
    const status = this.#exits.get(pid);
    if (status === undefined) throw new Error("Agent error: Invalid parameter 'pid'");
    this.#exits.delete(pid);
    return status;
  }

  diskState(): unknown {
    return {};
  }

  report(): GuestReport {
    return {
      phase: this.#phase,
      boots: this.#boots,
      hostname: 'ubuntu',
      instanceId: undefined,
      users: [],
      files: {},
      packages: [],
      services: {},
      swapOn: false,
      kernelModules: [],
      downloads: [],
      commandsRun: [],
      network: [],
      joinAttempts: [],
      warnings: [],
      errors: [],
      cloudInitDisabled: false,
    };
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async #boot(signal: AbortSignal): Promise<void> {
    this.#boots += 1;
    this.#enter('firmware');
    if (this.#input.behaviour === 'never-boots') return;
    if (!(await this.#pass(GUEST_BOOT_DURATIONS.firmware, signal))) return;
    this.#enter('kernel');
    if (!(await this.#pass(GUEST_BOOT_DURATIONS.kernel, signal))) return;
    this.#enter(this.#input.behaviour === 'hangs' ? 'hung' : 'running');
  }

  async #pass(ms: number, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#input.clock.sleep(ms / this.#input.speed, { signal });
      return !signal.aborted;
    } catch {
      return false;
    }
  }

  #enter(phase: GuestPhase): void {
    if (phase === this.#phase) return;
    this.#phase = phase;
    for (const listener of this.#listeners) listener();
  }
}
