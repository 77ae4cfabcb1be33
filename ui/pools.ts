// SPDX-License-Identifier: Apache-2.0
import type { DashboardPool } from '../src/http/contract.ts';
import { requestAction } from './actions.ts';
import { create, find, KeyedList, type Row, setAttribute, setText } from './dom.ts';
import { formatMoney, formatTime } from './format.ts';
import type { Work } from './frames.ts';

const PAUSE_MINUTES = 60;
/** Shown beside the values where the table is too narrow for columns. */
const COLUMNS = ['Ready', 'Target', 'Limits', 'Per hour', 'Today'];

const list = new KeyedList<DashboardPool>(find('pools'), ({ name }) => name, createPool);

export function showPools(pools: readonly DashboardPool[]): Work {
  return list.show(pools);
}

function createPool({ name }: DashboardPool): Row<DashboardPool> {
  const numbers = COLUMNS.map((label) =>
    create('td', { class: 'number', role: 'cell', 'data-label': label }),
  );
  const state = create('td', { class: 'pool-state', role: 'cell', 'data-label': 'State' });
  const pause = create('button', { type: 'button' });
  let isPaused = false;
  pause.addEventListener('click', () => {
    void (isPaused
      ? requestAction(`pools/${name}/resume`)
      : requestAction(`pools/${name}/pause`, { minutes: PAUSE_MINUTES }));
  });
  const { form, input } = scaleForm(name);
  const actions = create('td', { class: 'action', role: 'cell' });
  const title = create('th', { scope: 'row', role: 'rowheader' }, name);
  return {
    element: create('tr', { role: 'row' }, title, ...numbers, state, actions),
    update(pool) {
      setAttribute(input, 'placeholder', String(pool.target));
      if (!pool.isInConfig) actions.replaceChildren();
      else if (actions.childElementCount === 0) actions.append(form, pause);
      isPaused = pool.pausedUntil !== undefined;
      const texts = [
        String(pool.ready),
        String(pool.target),
        `${pool.min} – ${pool.max}`,
        formatMoney(pool.pricePerHour),
        formatMoney(pool.costToday),
      ];
      for (const [index, cell] of numbers.entries()) setText(cell, texts[index] ?? '');
      setText(state, describe(pool));
      const text = isPaused ? 'Resume' : 'Pause for an hour';
      setText(pause, text);
      setAttribute(pause, 'aria-label', `${text}: pool ${name}`);
    },
  };
}

function describe({
  problem,
  leaving,
  failed,
  pausedUntil,
  backedOffUntil,
}: DashboardPool): string {
  const until = pausedUntil ?? backedOffUntil;
  const parts = [
    ...(problem === undefined ? [] : [problem]),
    ...(until === undefined ? [] : [`until ${formatTime(until)}`]),
    ...(leaving === 0 ? [] : [`${leaving} leaving`]),
    ...(failed === 0 ? [] : [`${failed} failed`]),
  ];
  return parts.length === 0 ? 'ok' : parts.join('; ');
}

function scaleForm(name: string) {
  const input = create('input', {
    type: 'number',
    min: 0,
    step: 1,
    required: '',
    'aria-label': `New size of pool ${name}`,
  });
  const form = create('form', {}, input, create('button', {}, 'Scale'));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void requestAction(`pools/${name}/scale`, { to: input.valueAsNumber });
  });
  return { form, input };
}
