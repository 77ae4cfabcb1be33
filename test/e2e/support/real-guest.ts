// SPDX-License-Identifier: Apache-2.0
// One simulated guest in real time with network access; it knows only the content of its seed.
import { onTestFinished } from 'vitest';
import {
  buildSeedIso,
  type JoinInput,
  renderSeed,
  type SeedInput,
  toSeedFiles,
} from '../../../src/bootstrap/index.ts';
import {
  aK3sJoin,
  aKubeadmJoin,
  aMachineId,
  anRke2Join,
  aSeedInput,
  MAC,
  unwrap,
} from '../../../src/bootstrap/testing/a-seed.ts';
import {
  createGuest,
  type Guest,
  type GuestInput,
  type OpenConnection,
} from '../../../src/sim/proxmox/index.ts';
import { openHttpTransport, systemClock, systemRandom } from '../../../src/system/index.ts';
import { type ControlPlane, waitUntil } from '../controlplane/index.ts';

export const GIB = 2 ** 30;

export const connect: OpenConnection = ({ caPem, client }) =>
  openHttpTransport({
    tls:
      caPem === undefined
        ? { kind: 'insecure' }
        : { kind: 'verify', caPem, ...(client !== undefined && { client }) },
    unreachable: 'KUBERNETES_UNREACHABLE',
  });

type Distribution = 'k3s' | 'rke2' | 'kubeadm';
/** The fields of a control plane that a join uses. */
type JoinFacts = Pick<ControlPlane, 'server' | 'supervisor' | 'tokenPrefix' | 'caCertHash'>;

/** A join as the product writes it, for this control plane and token. */
export function createJoin(
  plane: JoinFacts,
  distribution: Distribution,
  token: string,
): Exclude<JoinInput, { kind: 'none' | 'custom' }> {
  const rancher = {
    server: plane.supervisor,
    token: `${plane.tokenPrefix}${token}`,
    sha256: undefined,
  };
  if (distribution === 'k3s') return aK3sJoin(rancher);
  if (distribution === 'rke2') return anRke2Join(rancher);
  return aKubeadmJoin({
    server: plane.server,
    token,
    caCertHashes: [plane.caCertHash],
    packages: ['containerd', 'kubeadm', 'kubelet'],
  });
}

export interface GuestOptions {
  readonly name: string;
  readonly vmId: number;
  readonly join: JoinInput;
  readonly pool?: Partial<SeedInput['pool']>;
  /** VM id in the seed, when it differs from the VM's own. */
  readonly seedVmId?: number;
}

export interface RealGuest {
  readonly guest: Guest;
  readonly machineId: string;
  readonly seed: ReturnType<typeof createSeed>;
  /** Boots the same disk without the seed, as after the seed was ejected. */
  readonly bootWithoutSeed: () => Guest;
}

function createSeed(order: GuestOptions, id: string) {
  const base = aSeedInput();
  return unwrap(
    renderSeed({
      ...base,
      machine: {
        ...base.machine,
        id: aMachineId(id),
        name: order.name,
        vmId: order.seedVmId ?? order.vmId,
      },
      pool: { ...base.pool, ...order.pool },
      join: order.join,
    }),
  );
}

/** Runs the steps as the engine does; returns the name of the failed step, if any. */
export async function runAgentSteps(
  guest: Guest,
  steps: RealGuest['seed']['agentSteps'],
): Promise<string | undefined> {
  const run = (command: readonly string[], input?: string) => {
    const pid = guest.agent.exec(command, input);
    return waitUntil(`the end of ${command.join(' ')}`, () => {
      const seen = guest.agent.execStatus(pid);
      return seen.exited === 1 ? seen : undefined;
    });
  };
  for (const step of steps) {
    if (step.kind === 'run') {
      const { exitcode } = await run(step.command, step.input);
      if (exitcode !== 0) return step.name;
    } else {
      await waitUntil(step.name, async () => {
        const status = await run(step.command);
        return step.until.includes((status['out-data'] ?? '').trim());
      });
    }
  }
  return undefined;
}

/** Boots a guest; it is stopped when the test ends. */
export function bootGuest(order: GuestOptions): RealGuest {
  const machineId = systemRandom.uuid();
  const seed = createSeed(order, machineId);
  const input: GuestInput = {
    vmId: order.vmId,
    smbiosUuid: machineId,
    cpus: 2,
    memoryBytes: 4 * GIB,
    interfaces: [{ slot: 'net0', mac: MAC, bridge: 'vmbr0' }],
    disk: {
      image: 'jammy-with-agent.qcow2',
      isFirstBoot: true,
      sizeBytes: 20 * GIB,
      state: undefined,
    },
    seedIso: buildSeedIso(toSeedFiles(seed), systemClock.now()),
    cloudInitDrive: undefined,
    agentEnabled: true,
    behaviour: 'normal',
    clock: systemClock,
    random: systemRandom,
    speed: 200,
    leaseAddress: () => `10.0.0.${order.vmId % 250}/24`,
    connect,
  };
  const start = (with_: GuestInput) => {
    const guest = createGuest(with_);
    onTestFinished(() => guest.stop());
    guest.start();
    return guest;
  };
  const guest = start(input);
  return {
    guest,
    machineId,
    seed,
    bootWithoutSeed: () =>
      start({
        ...input,
        seedIso: undefined,
        disk: { ...input.disk, isFirstBoot: false, state: guest.diskState() },
      }),
  };
}
