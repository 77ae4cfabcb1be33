// SPDX-License-Identifier: Apache-2.0
// Boots a machine from a seed in a simulated guest, to check what a guest does with the seed. Seed and
// simulator share no code.
import {
  buildSeedIso,
  type RenderedSeed,
  renderSeed,
  type SeedInput,
  toSeedFiles,
} from '../../src/bootstrap/index.ts';
import { unwrap } from '../../src/bootstrap/testing/a-seed.ts';
import {
  createGuestHarness,
  type GuestHarness,
} from '../../src/sim/proxmox/guest/testing/guest-harness.ts';

type GuestInput = GuestHarness['input'];
type DownloadAnswer = ReturnType<NonNullable<GuestInput['download']>>;

export interface Booted extends GuestHarness {
  readonly seed: RenderedSeed;
  /** Runs the agent steps. Returns the name of the step that failed, if any. */
  readonly join: () => Promise<string | undefined>;
}

export function seedOf(input: SeedInput): {
  readonly seed: RenderedSeed;
  readonly iso: Uint8Array;
} {
  const seed = unwrap(renderSeed(input));
  return { seed, iso: buildSeedIso(toSeedFiles(seed), 1_767_225_600_000) };
}

export async function booted(
  input: SeedInput,
  overrides: Partial<GuestInput> = {},
): Promise<Booted> {
  const { seed, iso } = seedOf(input);
  const bench = createGuestHarness({ seedIso: iso, ...overrides });
  await bench.boot();
  return { ...bench, seed, join: () => takeSteps(bench, seed) };
}

async function takeSteps(bench: GuestHarness, seed: RenderedSeed): Promise<string | undefined> {
  for (const step of seed.agentSteps) {
    const input = step.kind === 'run' ? step.input : undefined;
    const status = await bench.exec(step.command, input);
    const isDone =
      step.kind === 'run'
        ? status.exitcode === 0
        : step.until.includes((status['out-data'] ?? '').trim());
    if (!isDone) return step.name;
  }
  return undefined;
}

/** Downloads that are served from a table; everything else is simulated by default. */
export function downloads(answers: Readonly<Record<string, DownloadAnswer>>) {
  return (url: string): DownloadAnswer => answers[url];
}

/** An image that contains what kubeadm needs. */
export const KUBEADM_PACKAGES = ['containerd', 'kubeadm', 'kubelet'];
