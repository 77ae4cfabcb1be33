// SPDX-License-Identifier: Apache-2.0
// Events of a seed that take a while: a host that hangs while others work, and a VM that is restored from a backup
// shortly after its deletion.
import type { Machine } from '../../src/model/machine.ts';
import { cleanUpSite, createVm } from './external-changes.ts';
import { pick } from './faults.ts';
import type { Installation } from './installation.ts';
import { listOwnVms } from './invariants.ts';
import type { SoakEnvironment } from './soak-environment.ts';
import { hostsOf, LAB } from './soak-settings.ts';

const MINUTE_MS = 60_000;
const HANG_MS = 9 * MINUTE_MS;
/** A machine on a healthy host needs about two minutes; the rest is the bound. */
const MAX_PROVISION_MS = 5 * MINUTE_MS;
export const HUNG_HOST = 'hung host';

/** The run of a seed, as far as an episode needs it. */
interface Run {
  readonly environment: SoakEnvironment;
  readonly hasFailed: boolean;
  startProcess(installation: Installation): void;
  scaleTo(installation: Installation, pool: string, size: number): Promise<void>;
  runUntil(at: number): Promise<void>;
  runDrivers(forMs: number, onStep: () => Promise<void>): Promise<void>;
}

/** No call to one host is answered. New machines on the other hosts become ready nevertheless. */
export async function runHungHost(run: Run): Promise<void> {
  const { environment } = run;
  const { random, installations } = environment;
  const machines = await environment.machines();
  // A guest whose host was down boots for long, and the next guests are expected to boot for as long.
  if (machines.some(({ phase }) => phase === 'booting')) return;
  const before = new Set(machines.map(({ id }) => id));
  for (const { sim } of environment.regions.values()) sim.faults.clear();
  cleanUpSite(environment);
  for (const installation of installations) {
    await installation.cluster?.setMode('connected');
    installation.objects?.clearFaults();
    installation.pausedUntil = 0;
    run.startProcess(installation);
  }
  const host = pick(random, hostsOf(LAB));
  environment.log(`host ${host} hangs`);
  environment.countFeature(HUNG_HOST);
  const { faults } = environment.region(LAB).sim;
  faults.add({ kind: 'hang', host, times: Number.POSITIVE_INFINITY });
  for (const installation of installations) {
    for (const pool of installation.pools)
      await run.scaleTo(installation, pool, installation.maxSizeOf(pool));
  }
  const placedSince = new Map<string, number>();
  await run.runDrivers(HANG_MS, async () => {
    for (const machine of await environment.machines()) {
      if (before.has(machine.id)) continue;
      const { id, phase, placement } = machine;
      if (!isProvisioningBeside(host, machine)) placedSince.delete(id);
      else if (!placedSince.has(id)) placedSince.set(id, environment.now);
      const sinceMs = environment.now - (placedSince.get(id) ?? environment.now);
      if (sinceMs > MAX_PROVISION_MS)
        environment.reportViolation(
          `machine ${id} on ${placement?.host ?? ''} is ${phase} for too long while ${host} hangs`,
        );
    }
  });
  faults.clear();
}

/** Whether the machine is placed on another host than the hung one, and is not ready yet. */
function isProvisioningBeside(hungHost: string, { phase, placement }: Machine): boolean {
  if (placement === undefined || SETTLED_PHASES.includes(phase)) return false;
  return placement.region !== LAB || placement.host !== hungHost;
}

const SETTLED_PHASES: readonly string[] = ['ready', 'deleting', 'gone', 'failed'];
export const RESTORE = 'VM restored after its deletion';

/** A person restores the VM of a deleted machine while its VM id cools down. It must not be destroyed. */
export async function runRestore(run: Run): Promise<void> {
  const { environment } = run;
  const candidates = environment.active.flatMap((installation) =>
    listOwnVms(environment, installation)
      .filter(
        ({ marker, vm }) =>
          marker.readySinceSeconds !== undefined &&
          marker.deletingSinceSeconds === undefined &&
          vm.config['lock'] === undefined,
      )
      .map((own) => ({ ...own, installation })),
  );
  if (candidates.length === 0) return;
  const { installation, region, vm, marker } = pick(environment.random, candidates);
  // After the loss of a database the machine is known only after its adoption.
  if ((await findMachine(installation, marker.machine)) === undefined) return;
  if (!(await environment.requestDeletion(installation, marker.machine))) return;
  const isThere = () =>
    environment
      .region(region)
      .sim.inspect()
      .vms.some(({ id }) => id === vm.id);
  const until = environment.now + 10 * MINUTE_MS;
  while (isThere() && environment.now < until && !run.hasFailed)
    await run.runUntil(environment.now + MINUTE_MS);
  await run.runUntil(environment.now + environment.random.integer(10 * MINUTE_MS));
  const phase = (await findMachine(installation, marker.machine))?.phase;
  // While the deletion goes on, the restored VM is the one to delete; after a rollback the machine may have a new VM.
  if (isThere() || run.hasFailed || phase !== 'gone') return;
  environment.log(`external change: ${RESTORE}, VM ${region}/${vm.id}`);
  environment.countFeature(RESTORE);
  installation.deletionRequested.delete(marker.machine);
  installation.restored.add(marker.machine);
  createVm(environment, { region, id: vm.id, config: vm.config });
}

async function findMachine(installation: Installation, id: string): Promise<Machine | undefined> {
  return (await installation.machines()).find((machine) => machine.id === id);
}
