// SPDX-License-Identifier: Apache-2.0
// The page: receives the state and its changes, and shows the parts that changed.
import type { DashboardState, StateChange } from '../src/http/contract.ts';
import { showJournal, showPending, showPlans } from './decisions.ts';
import { create, find, setText } from './dom.ts';
import { formatCount, formatMoney, formatTime } from './format.ts';
import { schedule } from './frames.ts';
import { showHosts } from './hosts.ts';
import { showMachines, tickMachines } from './machines.ts';
import { showPlots } from './plots.ts';
import { showPools } from './pools.ts';

let state: DashboardState | undefined;

function show(next: DashboardState): void {
  const before = state;
  state = next;
  const isNew = (...parts: readonly (keyof DashboardState)[]) =>
    before === undefined || parts.some((part) => before[part] !== next[part]);
  if (isNew('mode', 'cluster', 'driver', 'isDriver', 'version')) showAbout(next);
  if (isNew('problems', 'isDriver')) showProblems(next);
  if (isNew('hosts')) schedule('hosts', showHosts(next.hosts));
  if (isNew('pools')) schedule('pools', showPools(next.pools));
  if (isNew('machines')) schedule('machines', showMachines(next.machines));
  if (isNew('pending', 'mode')) schedule('pending', showPending(next.pending, next.mode));
  if (isNew('plan', 'plans')) schedule('plans', showPlans(next));
  if (isNew('journal')) schedule('journal', showJournal(next.journal));
  if (isNew('samples', 'timesToReady')) schedule('plots', showPlots(next));
  if (isNew('hasActions')) {
    document.body.classList.toggle('has-actions', next.hasActions);
    find('token-form').hidden = !next.hasActions;
  }
  showSummary(next);
}

function showAbout({ cluster, mode, driver, isDriver, version }: DashboardState): void {
  const who = isDriver ? 'this process drives' : `driver: ${driver ?? 'none'}`;
  setText(find('about'), [cluster, `mode ${mode}`, who, version].filter(Boolean).join(' · '));
}

function showProblems({ problems, isDriver }: DashboardState): void {
  const texts = isDriver
    ? problems
    : [...problems, 'Another process drives: hosts and plans are shown there.'];
  find('problems').replaceChildren(...texts.map((text) => create('li', {}, text)));
}

function showSummary({ machines, pending, pools, hosts }: DashboardState): void {
  const count = (phase: string) => machines.filter((machine) => machine.phase === phase).length;
  const over = count('gone') + count('failed');
  const price = pools.reduce((sum, pool) => sum + (pool.pricePerHour ?? 0), 0);
  const values = {
    'machines ready': String(count('ready')),
    'being created or removed': String(machines.length - over - count('ready')),
    'pending pods': String(pending.length),
    hosts: String(hosts.length),
    'cost per hour': formatMoney(price),
  };
  const parent = find('summary');
  if (parent.childElementCount === 0) {
    for (const name of Object.keys(values))
      parent.append(create('div', {}, create('dt', {}, name), create('dd')));
  }
  for (const [index, text] of Object.values(values).entries()) {
    const value = parent.children[index]?.lastElementChild;
    if (value) setText(value, text);
  }
}

function apply(before: DashboardState, change: StateChange): DashboardState {
  const { changed, machines, removedMachines } = change;
  const hasMachines = machines.length + removedMachines.length > 0;
  const replaced = new Map(machines.map((machine) => [machine.id, machine]));
  const known = new Set(before.machines.map(({ id }) => id));
  const removed = new Set(removedMachines);
  const next = hasMachines
    ? [
        ...before.machines
          .filter(({ id }) => !removed.has(id))
          .map((machine) => replaced.get(machine.id) ?? machine),
        ...machines.filter(({ id }) => !known.has(id)),
      ]
    : before.machines;
  const parts = Object.entries(changed).map(([name, value]) => [name, value ?? undefined]);
  const replacedParts: Partial<DashboardState> = Object.fromEntries(parts);
  return { ...before, ...replacedParts, machines: next };
}

function connect(): void {
  const events = new EventSource('/api/v1/events');
  const connection = find('connection');
  let lastAt = 0;
  const heard = () => {
    lastAt = Date.now();
    setText(connection, 'live');
    connection.classList.add('is-live');
  };
  events.addEventListener('state', ({ data }: MessageEvent<string>) => {
    heard();
    const received: DashboardState = JSON.parse(data);
    show(received);
  });
  events.addEventListener('change', ({ data }: MessageEvent<string>) => {
    heard();
    const change: StateChange = JSON.parse(data);
    if (state !== undefined) show(apply(state, change));
  });
  events.addEventListener('alive', heard);
  events.addEventListener('error', () => {
    // EventSource connects again by itself, unless the server refused it.
    const since = lastAt === 0 ? '' : ` (last seen ${formatTime(lastAt)})`;
    setText(connection, `not connected${since}; trying again`);
    connection.classList.remove('is-live');
    if (events.readyState === EventSource.CLOSED) setTimeout(connect, 5_000);
  });
}

setInterval(tickMachines, 1_000);
find('token-form').addEventListener('submit', (event) => event.preventDefault());
setText(find('machine-count'), formatCount(0, 'machine'));
connect();
