// SPDX-License-Identifier: Apache-2.0
// A shell on a system that is up, without the boot around it. Its clock stands still for nobody: waits are over
// at once, so that a test is only about what commands do.
import type { Clock } from '../../../../ports/clock.ts';
import { SeededRandom } from '../../../../ports/fakes/seeded-random.ts';
import { GuestShell } from '../commands/guest-shell.ts';
import type { GuestInput } from '../guest-types.ts';
import type { Outcome } from '../shell/command.ts';
import { type GuestHistory, GuestSystem } from '../system/system.ts';

export interface ShellBench {
  readonly system: GuestSystem;
  readonly shell: GuestShell;
  readonly history: GuestHistory;
  /** How long all commands so far would have taken. */
  readonly elapsedMs: number;
  readonly sh: (
    text: string,
    options?: { readonly stdin?: string; readonly args?: readonly string[] },
  ) => Promise<Required<Outcome>>;
}

export function aShell(overrides: Partial<GuestInput> = {}): ShellBench {
  let elapsedMs = 0;
  const clock: Clock = {
    now: () => 1_767_225_600_000 + elapsedMs,
    monotonic: () => elapsedMs,
    sleep: async (ms) => {
      elapsedMs += ms;
    },
  };
  const history: GuestHistory = {
    commandsRun: [],
    downloads: [],
    joinAttempts: [],
    warnings: [],
    errors: [],
  };
  const input: GuestInput = {
    vmId: 1250,
    smbiosUuid: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
    cpus: 2,
    memoryBytes: 4 * 2 ** 30,
    interfaces: [{ slot: 'net0', mac: 'BC:24:11:00:00:07', bridge: 'vmbr0' }],
    disk: { image: 'jammy.qcow2', firstBoot: true, sizeBytes: 2 ** 34, state: undefined },
    seedIso: undefined,
    cloudInitDrive: undefined,
    agentEnabled: true,
    behaviour: 'normal',
    clock,
    random: new SeededRandom(7),
    speed: 1,
    leaseAddress: () => '10.0.0.50/24',
    ...overrides,
  };
  const { signal } = new AbortController();
  const system = new GuestSystem({
    input,
    disk: undefined,
    history,
    signal,
    changed: () => undefined,
  });
  system.beginBoot();
  system.network.configure([
    { name: 'ens18', dhcp4: true, addresses: [], nameservers: [], searchDomains: [] },
  ]);
  system.network.lease((mac, bridge) => input.leaseAddress(mac, bridge));
  const shell = new GuestShell(system);
  return {
    system,
    shell,
    history,
    get elapsedMs() {
      return elapsedMs;
    },
    sh: (text, options) => shell.script(text, options),
  };
}
