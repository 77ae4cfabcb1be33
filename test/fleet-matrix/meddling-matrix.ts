// SPDX-License-Identifier: Apache-2.0
// A person meddles with our VM at the beginning of any round. What is theirs is never touched, what is ours stays
// ours, and everything settles. In one process, on virtual time.
import {
  addressesInUse,
  aProcess,
  aSite,
  machinesIn,
  remains,
  type Site,
  type SourceName,
  untilAtRest,
  WHY,
} from '../fleet/simulated-site.ts';
import { onCall } from './on-call.ts';
import { spread } from './points.ts';
import type { Tally } from './tally.ts';

const COPY = 1_298;
const SPARE = 8_000;
const TEMPLATE = 9_000;
const ROUND = 'GET /cluster/resources';
const MINUTE_MS = 60_000;

/** Each returns the id of the VM that is somebody else's now, if there is one. */
const MEDDLINGS: Readonly<Record<string, (site: Site, vmId: number) => number | undefined>> = {
  rename({ sim }, vmId) {
    sim.externalChanges.rename(vmId, 'my-favourite');
    return undefined;
  },
  retag({ sim }, vmId) {
    sim.externalChanges.retag(vmId, ['mine']);
    return undefined;
  },
  move({ sim }, vmId) {
    const here = sim.inspect().vms.find(({ id }) => id === vmId)?.host;
    sim.externalChanges.migrate(vmId, here === 'pve2' ? 'pve3' : 'pve2');
    return undefined;
  },
  stop({ sim }, vmId) {
    sim.externalChanges.stop(vmId);
    return undefined;
  },
  copy({ sim }, vmId) {
    sim.externalChanges.copy(vmId, COPY);
    return COPY;
  },
  delete({ sim }, vmId) {
    sim.externalChanges.delete(vmId);
    return undefined;
  },
  reuse({ sim }, vmId) {
    sim.externalChanges.copy(TEMPLATE, SPARE);
    sim.externalChanges.delete(vmId);
    sim.externalChanges.copy(SPARE, vmId);
    sim.externalChanges.delete(SPARE);
    sim.externalChanges.rename(vmId, 'somebody-elses');
    return vmId;
  },
  /** Somebody puts a copy of ours, description and all, in the place of ours. */
  replace({ sim }, vmId) {
    sim.externalChanges.copy(vmId, SPARE);
    sim.externalChanges.delete(vmId);
    sim.externalChanges.copy(SPARE, vmId);
    sim.externalChanges.delete(SPARE);
    return vmId;
  },
};

interface Cell {
  readonly meddling: string;
  readonly round: number;
}

interface Theirs {
  vmId: number | undefined;
  looks: string;
}

export interface MeddlingOptions {
  readonly seed: number;
  readonly only: string | undefined;
  readonly most: number;
  readonly tally: Tally;
  readonly say: (text: string) => void;
}

export async function meddlingMatrix(source: SourceName, options: MeddlingOptions): Promise<void> {
  const { seed, only, most, tally, say } = options;
  const rounds = await roundsOf(source);
  const recorded = Object.keys(MEDDLINGS).flatMap((meddling) =>
    Array.from({ length: rounds }, (_, at): Cell => ({ meddling, round: at + 1 })),
  );
  const cells = spread(recorded, most, seed);
  let late = 0;
  for (const cell of cells) {
    const name = `meddling ${source} ${JSON.stringify(cell)}`;
    if (only !== undefined && !name.includes(only)) continue;
    const problems = await suffer(source, cell).catch((error: unknown) => [String(error)]);
    if (problems === 'too late') late += 1;
    else tally.count(name, problems);
  }
  say(`meddling, ${source}: ${recorded.length} cells, ${cells.length} taken, ${late} too late`);
}

async function roundsOf(source: SourceName): Promise<number> {
  const site = aSite(source);
  let rounds = 0;
  onCall(site, (call) => {
    if (call === ROUND) rounds += 1;
  });
  await upAndDown(site);
  return rounds;
}

async function upAndDown(site: Site): Promise<void> {
  const fleet = aProcess(site);
  for (const wanted of [1, 0]) {
    await fleet.scaleTo('workers', wanted, WHY);
    await untilAtRest(site, fleet);
  }
  // A machine whose VM is gone is given up after a while.
  await site.clock.advance(10 * MINUTE_MS);
  await untilAtRest(site, fleet);
}

async function suffer(source: SourceName, cell: Cell): Promise<readonly string[] | 'too late'> {
  const site = aSite(source);
  const theirs: Theirs = { vmId: undefined, looks: '' };
  let round = 0;
  let isDone = false;
  onCall(site, (call) => {
    if (call === ROUND) round += 1;
    if (call !== ROUND || isDone || round < cell.round) return;
    isDone = meddle(site, cell, theirs);
  });
  await upAndDown(site);
  if (!isDone) return 'too late';
  const left = remains(site);
  const expected = theirs.vmId === undefined ? [] : [theirs.vmId];
  const open = (await machinesIn(site.store)).filter(
    ({ phase }) => !['gone', 'failed'].includes(phase),
  );
  const facts: Readonly<Record<string, boolean>> = {
    'only theirs is left': left.vms.join() === expected.join(),
    'theirs is as it was': looksOf(site, theirs.vmId) === theirs.looks,
    'no ISO is left': left.isos.length === 0,
    'no disk but theirs is left': left.disks.every((vmId) => vmId === theirs.vmId),
    'no address is in use': (await addressesInUse(site.store)) === 0,
    'every machine is over': open.length === 0,
  };
  const wrong = Object.entries(facts).filter(([, holds]) => !holds);
  if (wrong.length === 0) return [];
  return [...wrong.map(([fact]) => `not so: ${fact}`), JSON.stringify({ left, theirs, open })];
}

/** Only while no task works on the VM: nobody could tell then who did what. */
function meddle(site: Site, { meddling }: Cell, theirs: Theirs): boolean {
  const { vms, runningTasks } = site.sim.inspect();
  const ours = vms.find(({ id }) => id < TEMPLATE);
  if (ours === undefined || ours.config['lock'] !== undefined || runningTasks.length > 0) {
    return false;
  }
  // Until it has run, a VM has no identity of its own that a copy would lack.
  if (meddling === 'replace' && !ours.running) return false;
  theirs.vmId = MEDDLINGS[meddling]?.(site, ours.id);
  theirs.looks = looksOf(site, theirs.vmId);
  return true;
}

function looksOf({ sim }: Site, vmId: number | undefined): string {
  if (vmId === undefined) return '';
  const { vms, volumes } = sim.inspect();
  return JSON.stringify([
    vms.find(({ id }) => id === vmId),
    volumes.filter((volume) => volume.vmId === vmId).map(({ id }) => id),
  ]);
}
