// SPDX-License-Identifier: Apache-2.0
// A simulated guest: boots on the Clock, reads its seed, answers the agent, ends or hangs. Owns the power of one
// VM's inside; knows nothing of hosts, storages, tasks or the API around it. boot.ts is where to read on.
import { SimulatedAgent } from './agent.ts';
import { runBoot } from './boot.ts';
import { GUEST_BOOT_DURATIONS } from './boot-durations.ts';
import { GuestShell } from './commands/guest-shell.ts';
import type { Guest, GuestInput, GuestPhase, GuestReport } from './guest-types.ts';
import { reportOf } from './report.ts';
import { type GuestHistory, GuestSystem } from './system/system.ts';

export { GUEST_BOOT_DURATIONS } from './boot-durations.ts';
export type * from './guest-types.ts';
export type { OpenConnection, ServerTrust } from './kubelet/server-api.ts';

export function createGuest(input: GuestInput): Guest {
  return new SimulatedGuest(input);
}

class SimulatedGuest implements Guest {
  readonly agent: SimulatedAgent;
  readonly #input: GuestInput;
  readonly #listeners = new Set<() => void>();
  readonly #history: GuestHistory = {
    commandsRun: [],
    downloads: [],
    joinAttempts: [],
    warnings: [],
    errors: [],
  };
  #phase: GuestPhase = 'off';
  #poweredOff = false;
  #power = new AbortController();
  #system: GuestSystem;
  #shell: GuestShell;
  /** The way down, once it has begun; true when it ended in the power being off. */
  #ending: Promise<boolean> | undefined;

  constructor(input: GuestInput) {
    this.#input = input;
    this.#system = this.#newSystem(input.disk.state);
    this.#shell = new GuestShell(this.#system);
    this.agent = new SimulatedAgent({
      answers: () => this.agentAnswers(),
      system: () => this.#system,
      shell: () => this.#shell,
    });
  }

  get poweredOff(): boolean {
    return this.#poweredOff;
  }

  start(): void {
    if (this.#phase !== 'off') return;
    this.#poweredOff = false;
    this.#boot();
  }

  stop(): void {
    this.#powerLoss();
    this.#enter('off');
  }

  async requestShutdown(): Promise<boolean> {
    const { behaviour } = this.#input;
    if (this.#ending !== undefined) return this.#ending;
    // Before the system is up nobody listens to the power button; a hung or stubborn one never does.
    const listens = this.#phase === 'cloud-init' || this.#phase === 'running';
    if (!listens || behaviour === 'ignores-shutdown') return false;
    return this.#end('off');
  }

  agentAnswers(): boolean {
    const { agentEnabled, behaviour } = this.#input;
    const isUp = this.#phase === 'cloud-init' || this.#phase === 'running';
    const isAllowed = agentEnabled && behaviour !== 'no-agent';
    return isUp && isAllowed && this.#system.activeUnits.has('qemu-guest-agent');
  }

  diskState(): unknown {
    return this.#system.state();
  }

  report(): GuestReport {
    return reportOf(this.#system, this.#phase);
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #boot(): void {
    this.#power = new AbortController();
    this.#system = this.#newSystem(this.#system.state());
    this.#shell = new GuestShell(this.#system);
    const boot = runBoot({
      system: this.#system,
      shell: this.#shell,
      enter: (phase) => this.#enter(phase),
    });
    void unlessOff(boot, this.#power.signal);
  }

  #newSystem(disk: unknown): GuestSystem {
    const { signal } = this.#power;
    return new GuestSystem({
      input: this.#input,
      disk,
      history: this.#history,
      signal,
      changed: () => this.#changed(signal),
    });
  }

  #changed(signal: AbortSignal): void {
    if (signal.aborted) return;
    this.#obey();
    this.#notify();
  }

  /** A command asked for the power: from here on the way down goes by itself. */
  #obey(): void {
    const { powerRequest } = this.#system;
    if (powerRequest !== undefined && this.#ending === undefined) void this.#end(powerRequest);
  }

  #end(how: 'off' | 'reboot'): Promise<boolean> {
    const ending = this.#goDown(how);
    this.#ending = ending;
    return ending;
  }

  async #goDown(how: 'off' | 'reboot'): Promise<boolean> {
    this.#enter('shutting-down');
    const { signal } = this.#power;
    await unlessOff(this.#system.pass(GUEST_BOOT_DURATIONS.shutdown), signal);
    if (signal.aborted) return false;
    this.#powerLoss();
    if (how === 'reboot') {
      this.#boot();
      return false;
    }
    this.#poweredOff = true;
    this.#enter('off');
    return true;
  }

  #powerLoss(): void {
    this.#power.abort();
    this.#ending = undefined;
    this.agent.forget();
  }

  #enter(phase: GuestPhase): void {
    // What the boot still had to say while the guest is on its way down is not heard.
    const isLate = this.#phase === 'shutting-down' && (phase === 'running' || phase === 'hung');
    if (isLate || phase === this.#phase) return;
    this.#phase = phase;
    this.#notify();
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}

/** Waits for the end, and takes a failure for it when the power went meanwhile. */
async function unlessOff(work: Promise<void>, signal: AbortSignal): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
