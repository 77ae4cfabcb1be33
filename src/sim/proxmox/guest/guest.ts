// SPDX-License-Identifier: Apache-2.0
// A simulated guest: boots on the Clock, reads its seed, runs the guest agent, shuts down or hangs. Owns the power
// state of one guest; has no access to hosts, storages, tasks or the Proxmox API. Continue reading at boot.ts.
import { SimulatedAgent } from './agent.ts';
import { runBoot } from './boot.ts';
import { DISABLED_FILE } from './cloud-init/cloud-init.ts';
import { GuestShell } from './commands/guest-shell.ts';
import { GUEST_BOOT_DURATIONS_MS } from './durations.ts';
import type { Guest, GuestInput, GuestPhase, GuestReport } from './guest-types.ts';
import { type GuestHistory, GuestSystem } from './system/system.ts';

export { GUEST_BOOT_DURATIONS_MS } from './durations.ts';
export type * from './guest-types.ts';
export type { OpenConnection } from './kubelet/server-api.ts';

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
  #isPoweredOff = false;
  #power = new AbortController();
  #system: GuestSystem;
  #shell: GuestShell;
  /** The shutdown in progress; resolves to true when it ends with the power off. */
  #shutdown: Promise<boolean> | undefined;

  constructor(input: GuestInput) {
    this.#input = input;
    this.#system = this.#newSystem(input.disk.state);
    this.#shell = new GuestShell(this.#system);
    this.agent = new SimulatedAgent({
      isRunning: () => this.isAgentRunning(),
      system: () => this.#system,
      shell: () => this.#shell,
    });
  }

  get isPoweredOff(): boolean {
    return this.#isPoweredOff;
  }

  start(): void {
    if (this.#phase !== 'off') return;
    this.#isPoweredOff = false;
    this.#boot();
  }

  stop(): void {
    this.#cutPower();
    this.#enterPhase('off');
  }

  async requestShutdown(): Promise<boolean> {
    const { behaviour } = this.#input;
    if (this.#shutdown !== undefined) return this.#shutdown;
    // A guest ignores the power button before cloud-init starts and while it hangs.
    const handlesPowerButton = this.#phase === 'cloud-init' || this.#phase === 'running';
    if (!handlesPowerButton || behaviour === 'ignores-shutdown') return false;
    return this.#beginShutdown('off');
  }

  isAgentRunning(): boolean {
    const { agentEnabled, behaviour } = this.#input;
    const isUp = this.#phase === 'cloud-init' || this.#phase === 'running';
    const isAllowed = agentEnabled && behaviour !== 'no-agent';
    return isUp && isAllowed && this.#system.activeUnits.has('qemu-guest-agent');
  }

  diskState(): unknown {
    return this.#system.toDiskState();
  }

  report(): GuestReport {
    return buildReport(this.#system, this.#phase);
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #boot(): void {
    this.#power = new AbortController();
    this.#system = this.#newSystem(this.#system.toDiskState());
    this.#shell = new GuestShell(this.#system);
    const boot = runBoot({
      system: this.#system,
      shell: this.#shell,
      enterPhase: (phase) => this.#enterPhase(phase),
    });
    void ignoreAfterPowerOff(boot, this.#power.signal);
  }

  #newSystem(disk: unknown): GuestSystem {
    const { signal } = this.#power;
    return new GuestSystem({
      input: this.#input,
      disk,
      history: this.#history,
      signal,
      onChange: () => this.#handleChange(signal),
    });
  }

  #handleChange(signal: AbortSignal): void {
    if (signal.aborted) return;
    this.#handlePowerRequest();
    this.#notifyListeners();
  }

  /** Starts the shutdown that a command requested. */
  #handlePowerRequest(): void {
    const { powerRequest } = this.#system;
    if (powerRequest !== undefined && this.#shutdown === undefined)
      void this.#beginShutdown(powerRequest);
  }

  #beginShutdown(how: 'off' | 'reboot'): Promise<boolean> {
    const shutdown = this.#shutDown(how);
    this.#shutdown = shutdown;
    return shutdown;
  }

  async #shutDown(how: 'off' | 'reboot'): Promise<boolean> {
    this.#enterPhase('shutting-down');
    const { signal } = this.#power;
    await ignoreAfterPowerOff(
      this.#system.sleepSimulated(GUEST_BOOT_DURATIONS_MS.shutdown),
      signal,
    );
    if (signal.aborted) return false;
    this.#cutPower();
    if (how === 'reboot') {
      this.#boot();
      return false;
    }
    this.#isPoweredOff = true;
    this.#enterPhase('off');
    return true;
  }

  #cutPower(): void {
    this.#power.abort();
    this.#shutdown = undefined;
    this.agent.clearProcesses();
  }

  #enterPhase(phase: GuestPhase): void {
    // A boot that finishes during the shutdown must not change the phase back.
    const isLate = this.#phase === 'shutting-down' && (phase === 'running' || phase === 'hung');
    if (isLate || phase === this.#phase) return;
    this.#phase = phase;
    this.#notifyListeners();
  }

  #notifyListeners(): void {
    for (const listener of this.#listeners) listener();
  }
}

/** Waits for the work; ignores its failure when the power is off. */
async function ignoreAfterPowerOff(work: Promise<void>, signal: AbortSignal): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

function buildReport(system: GuestSystem, phase: GuestPhase): GuestReport {
  const { history, files } = system;
  const units = [...new Set([...system.enabledUnits, ...system.activeUnits])].sort();
  const services = units.map((unit) => [
    unit,
    { enabled: system.enabledUnits.has(unit), active: system.activeUnits.has(unit) },
  ]);
  return {
    phase,
    boots: system.boots,
    hostname: system.hostname,
    instanceId: system.instanceId,
    users: [...system.users.values()],
    files: files.toState().files,
    packages: [...system.packages].sort(),
    services: Object.fromEntries(services),
    swapOn: system.isSwapOn,
    kernelModules: [...system.kernelModules].sort(),
    downloads: [...history.downloads],
    commandsRun: [...history.commandsRun],
    network: system.network.report(),
    joinAttempts: [...history.joinAttempts],
    warnings: [...history.warnings],
    errors: [...history.errors],
    cloudInitDisabled: files.exists(DISABLED_FILE),
  };
}
