// SPDX-License-Identifier: Apache-2.0
// Pending pods, the plan and the journal: what was decided, and why.
import type { DashboardPlan, DashboardState } from '../src/http/contract.ts';
import { create, find, KeyedList, type Row, setText } from './dom.ts';
import { formatTime } from './format.ts';

type Pending = DashboardState['pending'][number];
type Entry = DashboardState['journal'][number];

function textRow<Item>(parts: (item: Item) => readonly string[]): () => Row<Item> {
  return () => {
    const [first, second] = [create('strong'), create('span')];
    const third = create('span', { class: 'amounts' });
    return {
      element: create('li', {}, first, ' ', second, ' ', third),
      update(item) {
        const texts = parts(item);
        for (const [index, element] of [first, second, third].entries())
          setText(element, texts[index] ?? '');
      },
    };
  };
}

const pendingList = new KeyedList<Pending>(
  find('pending'),
  ({ name }) => name,
  textRow(({ name, where, reason }) => [name, where === undefined ? (reason ?? '') : `→ ${where}`]),
);

const journal = new KeyedList<Entry>(
  find('journal'),
  ({ sequence }) => String(sequence),
  textRow(({ at, reason, message, subject }) => [
    `${formatTime(at)} ${reason}`,
    message,
    unnamed(subject, message),
  ]),
);

/** What the message does not name itself; never the UUID of a machine. */
function unnamed(subject: Entry['subject'], message: string): string {
  const missing = Object.entries(subject).filter(
    ([kind, value]) => kind !== 'machine' && !message.includes(value),
  );
  return missing.map(([kind, value]) => `${kind} ${value}`).join(', ');
}

export function showPending(pending: DashboardState['pending'], mode: string): void {
  pendingList.show(pending);
  const none =
    mode === 'standalone' ? 'No pod is pending.' : 'The Cluster Autoscaler decides about pods.';
  find('pending').dataset['empty'] = pending.length === 0 ? none : '';
}

export function showJournal(entries: DashboardState['journal']): void {
  journal.show(entries);
}

function planText({ steps, refusals }: DashboardPlan): readonly HTMLElement[] {
  const done = steps.map(({ kind, pool, reason }) =>
    create('li', { class: kind }, create('strong', {}, `${kind} in ${pool}`), ` ${reason}`),
  );
  const items = done.length === 0 ? [create('li', {}, 'nothing to change')] : done;
  const refused = refusals.map(({ subject, reason }) =>
    create('li', {}, create('strong', {}, subject), ` ${reason}`),
  );
  const list = create('ul', { class: 'list', tabindex: 0 }, ...items);
  if (refused.length === 0) return [list];
  const summary = create('summary', {}, `${refused.length} refused, with reasons`);
  return [
    list,
    create('details', {}, summary, create('ul', { class: 'list', tabindex: 0 }, ...refused)),
  ];
}

export function showPlans(state: DashboardState): void {
  const { plan, plans, mode } = state;
  const parent = find('plan');
  if (plan === undefined) {
    const text =
      mode === 'standalone'
        ? 'This process has not decided yet.'
        : 'The Cluster Autoscaler decides; see its log.';
    parent.replaceChildren(create('p', {}, text));
    return;
  }
  // What a person has opened stays open.
  const open = new Set([...parent.querySelectorAll('details[open]')].map(titleOf));
  const earlier = plans.map((one) =>
    create('details', {}, create('summary', {}, summaryOf(one)), ...planText(one)),
  );
  parent.replaceChildren(
    create('h3', {}, `Now (${formatTime(plan.at)})`),
    ...planText(plan),
    ...(earlier.length === 0 ? [] : [create('h3', {}, 'Last changes'), ...earlier]),
  );
  for (const details of parent.querySelectorAll('details'))
    details.open = open.has(titleOf(details));
}

function titleOf(details: Element): string {
  const isNow = details.previousElementSibling?.previousElementSibling?.tagName === 'H3';
  return isNow ? 'now' : (details.querySelector('summary')?.textContent ?? '');
}

function summaryOf({ at, steps }: DashboardPlan): string {
  return `${formatTime(at)}: ${steps.map(({ kind, pool }) => `${kind} in ${pool}`).join(', ')}`;
}
