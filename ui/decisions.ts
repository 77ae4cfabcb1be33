// SPDX-License-Identifier: Apache-2.0
// Pending pods, the plan and the journal: what was decided, and why.
import type { DashboardPlan, DashboardState } from '../src/http/contract.ts';
import { create, find, KeyedList, type Row, setText } from './dom.ts';
import { formatTime } from './format.ts';
import type { Work } from './frames.ts';

type Pending = DashboardState['pending'][number];
type Entry = DashboardState['journal'][number];

const LIST = { class: 'list', tabindex: 0 };

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
  textRow(({ name, where, reason = '' }) => [
    name,
    where === undefined ? withoutSubject(reason, `pod ${name}`) : `→ ${where}`,
  ]),
);

/** A reason is a sentence about its subject, which the row names already. */
function withoutSubject(reason: string, subject: string): string {
  return reason.startsWith(`${subject} `) ? reason.slice(subject.length + 1) : reason;
}

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

export function* showPending(pending: DashboardState['pending'], mode: string): Work {
  yield* pendingList.show(pending);
  const none =
    mode === 'standalone' ? 'No pod is pending.' : 'The Cluster Autoscaler decides about pods.';
  find('pending').dataset['empty'] = pending.length === 0 ? none : '';
}

export function showJournal(entries: DashboardState['journal']): Work {
  return journal.show(entries);
}

/** The elements of refusals exist only while a person has opened them: a plan may refuse hundreds of pods and nodes. */
function createPlan(): Row<DashboardPlan> {
  const [list, refused] = [create('ul', LIST), create('ul', LIST)];
  const summary = create('summary');
  const details = create('details', {}, summary, refused);
  let refusals: DashboardPlan['refusals'] = [];
  const showRefusals = () =>
    refused.replaceChildren(
      ...(details.open ? refusals : []).map(({ subject, reason }) =>
        create('li', {}, create('strong', {}, subject), ` ${withoutSubject(reason, subject)}`),
      ),
    );
  details.addEventListener('toggle', showRefusals);
  return {
    element: create('div', {}, list, details),
    update(plan) {
      const steps = plan.steps.map(({ kind, pool, reason }) =>
        create('li', { class: kind }, create('strong', {}, `${kind} in ${pool}`), ` ${reason}`),
      );
      list.replaceChildren(
        ...(steps.length === 0 ? [create('li', {}, 'nothing to change')] : steps),
      );
      ({ refusals } = plan);
      details.hidden = refusals.length === 0;
      setText(summary, `${refusals.length} refused, with reasons`);
      showRefusals();
    },
  };
}

function createEarlierPlan(plan: DashboardPlan): Row<DashboardPlan> {
  const element = create('details', {}, create('summary', {}, summaryOf(plan)));
  element.addEventListener('toggle', () => {
    if (!element.open || element.childElementCount > 1) return;
    const content = createPlan();
    content.update(plan);
    element.append(content.element);
  });
  // A plan that was carried out does not change.
  return { element, update: () => undefined };
}

const planTitle = create('h3');
const planNow = createPlan();
const earlierTitle = create('h3', {}, 'Last changes');
const earlierPlans = create('div');
const earlierList = new KeyedList<DashboardPlan>(
  earlierPlans,
  ({ at }) => String(at),
  createEarlierPlan,
);
find('plan').append(planTitle, planNow.element, earlierTitle, earlierPlans);

export function* showPlans({ plan, plans, mode }: DashboardState): Work {
  const noPlan =
    mode === 'standalone'
      ? 'This process has not decided yet.'
      : 'The Cluster Autoscaler decides; see its log.';
  setText(planTitle, plan === undefined ? noPlan : `Now (${formatTime(plan.at)})`);
  planNow.element.hidden = plan === undefined;
  earlierTitle.hidden = plans.length === 0;
  if (plan !== undefined) planNow.update(plan);
  yield;
  yield* earlierList.show(plans);
}

function summaryOf({ at, steps }: DashboardPlan): string {
  return `${formatTime(at)}: ${steps.map(({ kind, pool }) => `${kind} in ${pool}`).join(', ')}`;
}
