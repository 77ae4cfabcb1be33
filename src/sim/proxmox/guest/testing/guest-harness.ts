// SPDX-License-Identifier: Apache-2.0
// Test harness with one guest: default input, a virtual clock, and helpers for common steps.
import { SeededRandom } from '../../../../ports/fakes/seeded-random.ts';
import { VirtualClock } from '../../../../ports/fakes/virtual-clock.ts';
import { createGuest, type Guest, type GuestExecStatus, type GuestInput } from '../guest.ts';
import { buildTestIso } from './test-iso.ts';

export interface GuestHarness {
  readonly guest: Guest;
  readonly clock: VirtualClock;
  readonly input: GuestInput;
  /** Powers on and advances the clock by ten minutes. */
  readonly boot: () => Promise<void>;
  /** Runs a command through the guest agent and waits for its exit. */
  readonly exec: (command: readonly string[], input?: string) => Promise<GuestExecStatus>;
}

export const MAC = 'BC:24:11:00:00:07';

export function createGuestHarness(overrides: Partial<GuestInput> = {}): GuestHarness {
  const clock = new VirtualClock();
  const input: GuestInput = {
    vmId: 1250,
    smbiosUuid: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
    cpus: 2,
    memoryBytes: 4 * 2 ** 30,
    interfaces: [{ slot: 'net0', mac: MAC, bridge: 'vmbr0' }],
    disk: {
      image: 'jammy-with-agent.qcow2',
      isFirstBoot: true,
      sizeBytes: 20 * 2 ** 30,
      state: undefined,
    },
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
  const guest = createGuest(input);
  return {
    guest,
    clock,
    input,
    boot: async () => {
      guest.start();
      await clock.advance(600_000);
    },
    exec: async (command, stdin) => {
      const pid = guest.agent.exec(command, stdin);
      await clock.advance(600_000);
      return guest.agent.execStatus(pid);
    },
  };
}

export interface SeedText {
  readonly metaData?: string;
  readonly userData?: string;
  readonly networkConfig?: string;
}

export function buildSeedIso(seed: SeedText = {}): Uint8Array {
  const files: Record<string, string> = {
    'meta-data': seed.metaData ?? 'instance-id: i-1\nlocal-hostname: worker-1\n',
    'user-data': seed.userData ?? '#cloud-config\n',
  };
  if (seed.networkConfig !== undefined) files['network-config'] = seed.networkConfig;
  return buildTestIso({ files, joliet: true, rockRidge: true });
}

/** Creates a guest with this user-data and boots it. */
export async function bootWithUserData(
  userData: string,
  overrides: Partial<GuestInput> = {},
): Promise<GuestHarness> {
  const harness = createGuestHarness({ seedIso: buildSeedIso({ userData }), ...overrides });
  await harness.boot();
  return harness;
}
