// SPDX-License-Identifier: Apache-2.0
// Machines, each with the time it spent in the phases of its creation.
import type { DashboardMachine } from '../src/http/contract.ts';
import { requestAction } from './actions.ts';
import {
  create,
  find,
  findInput,
  KeyedList,
  type Row,
  setAttribute,
  setColor,
  setText,
} from './dom.ts';
import { formatBytes, formatCount, formatSeconds } from './format.ts';
import { schedule, type Work } from './frames.ts';

const CREATION = [
  'requested',
  'placed',
  'creating',
  'configuring',
  'starting',
  'booting',
  'joining',
] as const;
const OVER = ['gone', 'failed'];

const list = new KeyedList<DashboardMachine>(find('machines'), ({ id }) => id, createMachine);
const filter = findInput('filter');
let shown: readonly DashboardMachine[] = [];

filter.addEventListener('input', () => schedule('machines', showMachines(shown)));
find('phase-legend').append(
  ...CREATION.map((phase) =>
    create('li', {}, setColor(create('span', { class: 'swatch colored' }), colorOf(phase)), phase),
  ),
);

export function* showMachines(machines: readonly DashboardMachine[]): Work {
  shown = machines;
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const matching =
    words.length === 0
      ? machines
      : machines.filter((machine) => {
          const text = textOf(machine).toLowerCase();
          return words.every((word) => text.includes(word));
        });
  const longest = Math.max(1, ...machines.map((machine) => totalOf(stepsOf(machine))));
  // The scale of all timelines, so that bars of slow machines are longer; rounded, so that it changes rarely.
  find('machines').style.setProperty(
    '--longest',
    String(2 ** (Math.ceil(Math.log2(longest) * 4) / 4)),
  );
  const all = formatCount(machines.length, 'machine');
  setText(
    find('machine-count'),
    matching.length === machines.length ? all : `${matching.length} of ${all}`,
  );
  yield* list.show(matching.toSorted((a, b) => order(a) - order(b)));
}

/** The times of machines that are being created grow; those on the screen are enough. */
export function tickMachines(): void {
  const ids = new Set(shown.map(({ id }) => id));
  for (const id of timelines.keys()) if (!ids.has(id)) timelines.delete(id);
  const growing = shown
    .filter(({ phase }) => phase !== 'ready' && !OVER.includes(phase))
    .flatMap(({ id }) => timelines.get(id) ?? [])
    .filter(({ element }) => element.checkVisibility({ contentVisibilityAuto: true }));
  for (const timeline of growing) timeline.show();
}

/** Those that change first, then the newest; those that are over last. */
function order({ phase, phases }: DashboardMachine): number {
  const group = OVER.includes(phase) ? 2 : phase === 'ready' ? 1 : 0;
  return group * 1e15 - (phases[0]?.at ?? 0);
}

function textOf(machine: DashboardMachine): string {
  const { name, id, pool, host, region, phase, node, vmId } = machine;
  return [name ?? id, pool, region, host, phase, node, vmId, ...machine.addresses].join(' ');
}

const timelines = new Map<string, { readonly element: HTMLElement; show(): void }>();

function createMachine({ id }: DashboardMachine): Row<DashboardMachine> {
  const name = create('strong');
  const phase = create('span', { class: 'phase' });
  const facts = create('span', { class: 'facts' });
  const note = create('span', { class: 'note' });
  const track = create('span', { class: 'track' });
  const seconds = create('span', { class: 'amounts' });
  const link = create('a', { rel: 'noreferrer', target: '_blank' }, 'Proxmox');
  const drain = action(`machines/${id}/drain`, 'Drain');
  const remove = action(`machines/${id}/delete`, 'Delete');
  const actions = create('span', { class: 'action' }, drain, remove);
  const parts = [name, phase, facts, link, actions, track, seconds, note];
  const element = create('li', { class: 'machine', id: `machine-${id}`, tabindex: -1 }, ...parts);
  return {
    element,
    update(machine) {
      const title = machine.name ?? machine.id.slice(0, 8);
      setText(name, title);
      setText(phase, machine.phase);
      setAttribute(phase, 'class', `phase is-${machine.phase}`);
      setText(facts, factsOf(machine));
      setText(note, machine.failure ?? machine.drain ?? '');
      link.hidden = machine.url === undefined;
      if (machine.url !== undefined) setAttribute(link, 'href', machine.url);
      setAttribute(link, 'aria-label', `${title} in Proxmox`);
      setAttribute(drain, 'aria-label', `Drain and delete ${title}`);
      setAttribute(remove, 'aria-label', `Delete ${title} without draining it`);
      actions.hidden = OVER.includes(machine.phase);
      const show = () => showTimeline(machine, track, seconds);
      timelines.set(id, { element: track, show });
      show();
    },
  };
}

function action(path: string, text: string): HTMLButtonElement {
  const button = create('button', { type: 'button' }, text);
  button.addEventListener('click', () => {
    const question = `${button.getAttribute('aria-label')}?`;
    if (window.confirm(question)) void requestAction(path);
  });
  return button;
}

function factsOf({
  pool,
  region,
  host,
  vmId,
  cpu,
  memoryBytes,
  addresses,
  node,
  name,
}: DashboardMachine): string {
  const place = host === undefined ? 'no place yet' : `${region}/${host} VM ${vmId}`;
  const ownNode = node === undefined || node === name ? [] : [`node ${node}`];
  const size = `${formatCount(cpu, 'CPU')}, ${formatBytes(memoryBytes)}`;
  return [`pool ${pool}`, place, size, ...addresses, ...ownNode].join(' · ');
}

/** Neighbors differ clearly; the grey one is for the wait before anything happens. */
function colorOf(phase: string): number {
  return ((CREATION as readonly string[]).indexOf(phase) + 6) % 7;
}

interface TimelineStep {
  readonly phase: string;
  readonly seconds: number;
}

function stepsOf({ phases }: DashboardMachine): readonly TimelineStep[] {
  return phases.flatMap(({ phase, at }, index) => {
    if (!(CREATION as readonly string[]).includes(phase)) return [];
    const end = phases[index + 1]?.at ?? Date.now();
    return [{ phase, seconds: Math.max(0, (end - at) / 1_000) }];
  });
}

function totalOf(steps: readonly TimelineStep[]): number {
  return steps.reduce((sum, step) => sum + step.seconds, 0);
}

function showSegment(track: HTMLElement, index: number, { phase, seconds }: TimelineStep): void {
  const known = track.children[index];
  const segment =
    known instanceof HTMLElement ? known : create('span', { class: 'segment colored' });
  if (known === undefined) track.append(segment);
  setAttribute(segment, 'title', `${phase}: ${formatSeconds(seconds)}`);
  segment.style.width = `calc(100% * ${seconds} / var(--longest))`;
  setColor(segment, colorOf(phase));
}

function showTimeline(machine: DashboardMachine, track: HTMLElement, seconds: HTMLElement): void {
  const { phase: current } = machine;
  const steps = stepsOf(machine);
  const total = totalOf(steps);
  for (const [index, step] of steps.entries()) showSegment(track, index, step);
  while (track.childElementCount > steps.length) track.lastElementChild?.remove();
  const longest = steps.toSorted((a, b) => b.seconds - a.seconds)[0];
  const most =
    longest === undefined || total === 0
      ? ''
      : `, most of it ${longest.phase} (${formatSeconds(longest.seconds)})`;
  const begun = current === 'ready' ? 'ready after' : 'creation:';
  setText(seconds, steps.length === 0 ? '' : `${begun} ${formatSeconds(total)}${most}`);
}
