// SPDX-License-Identifier: Apache-2.0
// A shell on a running system, without a boot. Sleeps return immediately and only add to `elapsedMs`, so that tests
// depend only on the effects of commands.
import type { Clock } from '../../../../ports/clock.ts';
import { SeededRandom } from '../../../../ports/fakes/seeded-random.ts';
import { GuestShell } from '../commands/guest-shell.ts';
import type { GuestInput } from '../guest-types.ts';
import type { CommandResult } from '../shell/command.ts';
import { type GuestHistory, GuestSystem } from '../system/system.ts';

export interface ShellHarness {
  readonly system: GuestSystem;
  readonly shell: GuestShell;
  readonly history: GuestHistory;
  /** Total simulated duration of all commands so far. */
  readonly elapsedMs: number;
  readonly sh: (
    text: string,
    options?: { readonly stdin?: string; readonly args?: readonly string[] },
  ) => Promise<Required<CommandResult>>;
}

export function createShellHarness(overrides: Partial<GuestInput> = {}): ShellHarness {
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
    disk: { image: 'jammy.qcow2', isFirstBoot: true, sizeBytes: 2 ** 34, state: undefined },
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
    onChange: () => undefined,
  });
  system.beginBoot();
  system.network.configure([
    { name: 'ens18', dhcp4: true, addresses: [], nameservers: [], searchDomains: [] },
  ]);
  system.network.requestLeases((mac, bridge) => input.leaseAddress(mac, bridge));
  const shell = new GuestShell(system);
  return {
    system,
    shell,
    history,
    get elapsedMs() {
      return elapsedMs;
    },
    sh: (text, options) => shell.runScript(text, options),
  };
}
