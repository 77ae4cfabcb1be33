// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import { type Check, ok } from './check.ts';
import { CHECK_DEADLINE_MS, type CheckProgress, runChecks } from './run-checks.ts';

function aCheck(subject: string, run: Check['run']): Check {
  return { name: 'endpoint', group: 'region lab', subject, run };
}

it('reports a check that never ends after its deadline, and the others before', async () => {
  const clock = new VirtualClock();
  const progress: CheckProgress[] = [];
  const signals: AbortSignal[] = [];
  const hanging = aCheck('dead', (signal) => {
    signals.push(signal);
    return new Promise(() => undefined);
  });
  const running = runChecks([[hanging, aCheck('alive', () => Promise.resolve(ok('answers')))]], {
    clock,
    signal: new AbortController().signal,
    onProgress: (one) => progress.push(one),
  });
  await clock.advance(CHECK_DEADLINE_MS - 1);
  expect(progress).toEqual([{ ended: 1, known: 2 }]);
  await clock.advance(1);
  expect(await running).toMatchObject([
    { subject: 'dead', status: 'failure', cause: 'no answer within 40 s' },
    { subject: 'alive', status: 'ok' },
  ]);
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
});

it('runs checks whose source is known later beside the others, and keeps the order of the sources', async () => {
  const later = Promise.withResolvers<readonly Check[]>();
  const running = runChecks([later.promise, [aCheck('first', () => Promise.resolve(ok('')))]], {
    clock: new VirtualClock(),
    signal: new AbortController().signal,
  });
  later.resolve([aCheck('second', () => Promise.reject(new Error('broken')))]);
  expect((await running).map(({ subject, status }) => [subject, status])).toEqual([
    ['second', 'failure'],
    ['first', 'ok'],
  ]);
});
