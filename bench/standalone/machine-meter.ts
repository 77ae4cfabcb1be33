// SPDX-License-Identifier: Apache-2.0
// Adds up how long VMs run on a simulated site.
import type { ProxmoxSim } from '../../src/sim/proxmox/index.ts';

const SAMPLE_MS = 100;

export class MachineMeter {
  machineSeconds = 0;
  cpuSeconds = 0;
  readonly #sim: ProxmoxSim;
  readonly #timer: NodeJS.Timeout;
  #sampledAt = performance.now();

  constructor(sim: ProxmoxSim) {
    this.#sim = sim;
    this.#timer = setInterval(() => this.#sample(), SAMPLE_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#sample();
  }

  #sample(): void {
    const now = performance.now();
    const seconds = (now - this.#sampledAt) / 1_000;
    this.#sampledAt = now;
    for (const { running, config } of this.#sim.inspect().vms) {
      if (!running) continue;
      this.machineSeconds += seconds;
      this.cpuSeconds += seconds * Number(config['cores'] ?? 1);
    }
  }
}
