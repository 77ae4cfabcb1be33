// SPDX-License-Identifier: Apache-2.0
// Hosts and their guests to scale: the bars of a host with twice the memory are twice as long.
import type { DashboardGuest, DashboardHost } from '../src/http/contract.ts';
import { create, find, KeyedList, type Row, setAttribute, setText } from './dom.ts';
import { formatBytes, formatCount } from './format.ts';
import type { Work } from './frames.ts';

interface Segment {
  readonly key: string;
  readonly kind: string;
  readonly amount: number;
  readonly title: string;
  readonly machine?: string | undefined;
}

interface Bar {
  readonly total: number;
  /** Of the longest bar. */
  readonly scale: number;
  readonly segments: readonly Segment[];
  readonly text: string;
}

/** Longest bars, by which all others are scaled. */
interface Scale {
  readonly memory: number;
  readonly cpu: number;
}

let scale: Scale = { memory: 1, cpu: 1 };

const list = new KeyedList<DashboardHost>(find('hosts'), hostKey, createHost);

function hostKey({ region, name }: DashboardHost): string {
  return `${region}/${name}`;
}

export function* showHosts(hosts: readonly DashboardHost[]): Work {
  scale = {
    memory: Math.max(1, ...hosts.map(({ memoryBytes }) => memoryBytes)),
    cpu: Math.max(1, ...hosts.map((host) => cpuCapacity(host))),
  };
  yield* list.show(hosts);
}

function cpuCapacity({ cpus, cpuOvercommit }: DashboardHost): number {
  return cpus * cpuOvercommit;
}

function createHost(host: DashboardHost): Row<DashboardHost> {
  const state = create('span', { class: 'state' });
  const memory = createBar('memory');
  const cpu = createBar('CPU');
  const title = create('h3', {}, hostKey(host), ' ', state);
  return {
    element: create('article', { class: 'host' }, title, memory.element, cpu.element),
    update(next) {
      setText(state, next.isOnline ? '' : 'offline');
      memory.update(memoryBar(next));
      cpu.update(cpuBar(next));
    },
  };
}

function guestName({ name, vmId, kind, isRunning }: DashboardGuest): string {
  const words = [kind === 'container' ? 'container' : 'VM', vmId, name];
  return [...words, isRunning ? undefined : '(not running)']
    .filter((word) => word !== undefined)
    .join(' ');
}

function memoryBar(host: DashboardHost): Bar {
  const { memoryBytes: total, reservedBytes } = host;
  const format = formatBytes;
  return bar({
    host,
    total,
    reserved: Math.min(reservedBytes, total),
    longest: scale.memory,
    of: ({ memoryBytes }) => memoryBytes,
    format,
  });
}

function cpuBar(host: DashboardHost): Bar {
  return bar({
    host,
    total: cpuCapacity(host),
    reserved: 0,
    longest: scale.cpu,
    of: ({ cpus }) => cpus,
    format: (cpus) => formatCount(Number(cpus.toFixed(1)), 'CPU'),
  });
}

interface BarInput {
  readonly host: DashboardHost;
  readonly total: number;
  readonly reserved: number;
  readonly longest: number;
  readonly of: (guest: DashboardGuest) => number;
  readonly format: (amount: number) => string;
}

/** Guests that do not run count too: placement leaves space for them. */
function bar({ host, total, reserved, longest, of, format }: BarInput): Bar {
  const sum = (isOurs: boolean) =>
    host.guests
      .filter(({ kind }) => (kind === 'machine') === isOurs)
      .reduce((amount, guest) => amount + of(guest), 0);
  const [ours, others] = [sum(true), sum(false)];
  const free = Math.max(0, total - reserved - ours - others);
  const guests = host.guests
    .toSorted((a, b) => Number(b.kind === 'machine') - Number(a.kind === 'machine'))
    .map((guest) => ({
      key: `${guest.vmId}`,
      kind: guest.kind === 'machine' ? 'machine' : 'vm',
      amount: of(guest),
      title: `${guestName(guest)}: ${format(of(guest))}`,
      machine: guest.machine,
    }));
  return {
    total: Math.max(total, ours + others + reserved),
    scale: total / longest,
    segments: [
      ...guests,
      {
        key: 'reserved',
        kind: 'reserved',
        amount: reserved,
        title: `reserved: ${format(reserved)}`,
      },
      { key: 'free', kind: 'free', amount: free, title: `free: ${format(free)}` },
    ].filter(({ amount }) => amount > 0),
    text: `${format(ours)} ours, ${format(others)} others, ${reserved === 0 ? '' : `${format(reserved)} reserved, `}${format(free)} free of ${format(total)}`,
  };
}

function createBar(name: string): Row<Bar> {
  const text = create('span', { class: 'amounts' });
  const track = create('div', { class: 'track' });
  let total = 1;
  const segments = new KeyedList<Segment>(
    track,
    ({ key }) => key,
    () => {
      const element = create('span');
      let shown: string | undefined;
      element.addEventListener('click', () => {
        if (shown !== undefined) showMachine(shown);
      });
      return {
        element,
        update({ kind, amount, title, machine }) {
          shown = machine;
          setAttribute(element, 'class', `segment ${kind}`);
          setAttribute(element, 'title', title);
          element.style.flexGrow = String(amount / total);
        },
      };
    },
  );
  return {
    element: create('div', { class: 'bar' }, create('span', { class: 'label' }, name), track, text),
    update(next) {
      total = next.total;
      track.style.width = `${Math.max(5, next.scale * 100)}%`;
      segments.showAtOnce(next.segments);
      setText(text, next.text);
    },
  };
}

function showMachine(id: string): void {
  const element = document.getElementById(`machine-${id}`);
  element?.scrollIntoView({ block: 'center' });
  element?.focus();
}
