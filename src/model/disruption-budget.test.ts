// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { coversPod, disruptionBudgetFromKubernetes } from './disruption-budget.ts';

const source = (selector: object | null, status?: object) =>
  disruptionBudgetFromKubernetes({
    metadata: { name: 'web', namespace: 'shop' },
    spec: { selector },
    ...(status && { status }),
  });

test('a budget covers the pods of its namespace that its selector matches', () => {
  const budget = source({ matchLabels: { app: 'web' } }, { disruptionsAllowed: 2 });
  if (!budget.ok) throw new Error(budget.problem);
  expect(budget.value.disruptionsAllowed).toBe(2);
  const labels = { app: 'web' };
  expect(coversPod(budget.value, { namespace: 'shop', labels })).toBe(true);
  expect(coversPod(budget.value, { namespace: 'other', labels })).toBe(false);
  expect(coversPod(budget.value, { namespace: 'shop', labels: { app: 'db' } })).toBe(false);
});

test('an empty selector covers every pod of the namespace, an absent one none', () => {
  const covers = (selector: object | null) => {
    const budget = source(selector);
    return budget.ok && coversPod(budget.value, { namespace: 'shop', labels: {} });
  };
  expect([covers({}), covers(null)]).toEqual([true, false]);
});

test('a budget without a status allows no disruption', () => {
  expect(source({})).toMatchObject({ ok: true, value: { disruptionsAllowed: 0 } });
});

test('refuses a selector that is not valid, with the name of the budget', () => {
  const broken = source({ matchExpressions: [{ key: 'a', operator: 'Gt', values: ['1'] }] });
  expect(broken).toMatchObject({
    ok: false,
    problem: expect.stringContaining("PodDisruptionBudget 'web'"),
  });
});
