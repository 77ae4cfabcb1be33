// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { type MachineId, PHASES } from '../model/machine.ts';
import { type MemberHealth, sortForDeletion } from './deletion-order.ts';
import type { Member } from './limits.ts';

interface Known extends MemberHealth {
  readonly member: Member;
}

const SIZE = { cpu: 1, memoryBytes: 2 ** 30, diskBytes: 2 ** 30 };

function aMember(
  name: string,
  phase: Member['phase'],
  { age = 10, ...health }: MemberHealth & { readonly age?: number } = {},
): Known {
  return {
    member: { id: name as MachineId, phase, requestedAt: 1_000 - age, size: SIZE },
    ...health,
  };
}

function orderOf(known: readonly Known[]): readonly string[] {
  const byId = new Map(known.map((one) => [one.member.id, one]));
  return sortForDeletion(
    known.map(({ member }) => member),
    (id) => byId.get(id) ?? {},
  ).map(({ id }) => id);
}

it('removes failed and unplaced machines first, then on hosts that are down, NotReady, not ready yet, the youngest', () => {
  const expected = [
    aMember('without a record', undefined),
    aMember('failed', 'failed', { age: 1 }),
    aMember('requested', 'requested', { age: 2 }),
    aMember('creating on a host that is down', 'creating', { isHostDown: true }),
    aMember('ready on a host that is down', 'ready', { isHostDown: true, isNodeReady: true }),
    aMember('NotReady', 'ready', { age: 99, isNodeReady: false }),
    aMember('placed', 'placed'),
    aMember('joining', 'joining', { isNodeReady: false }),
    aMember('young', 'ready', { age: 1, isNodeReady: true }),
    aMember('unknown', 'ready', { age: 2 }),
    aMember('old', 'ready', { age: 3, isNodeReady: true, isHostDown: false }),
  ];
  const names = expected.map(({ member }) => member.id);
  expect(orderOf(expected.toReversed())).toEqual(names);
});

const random = fc.record({
  phase: fc.option(fc.constantFrom(...PHASES), { nil: undefined }),
  age: fc.nat(4),
  isHostDown: fc.constantFrom(true, false, undefined),
  isNodeReady: fc.constantFrom(true, false, undefined),
});

it('never depends on the order of the members, and returns each of them once', () => {
  fc.assert(
    fc.property(fc.array(random), fc.infiniteStream(fc.nat()), (members, seeds) => {
      const known = members.map(({ phase, ...rest }, index) => aMember(`m${index}`, phase, rest));
      const shuffled = known
        .map((one) => ({ one, at: seeds.next().value ?? 0 }))
        .toSorted((a, b) => a.at - b.at)
        .map(({ one }) => one);
      const order = orderOf(known);
      expect(orderOf(shuffled)).toEqual(order);
      expect(order.toSorted()).toEqual(known.map(({ member }) => member.id as string).toSorted());
    }),
  );
});

it('never removes a working machine before one that does not work', () => {
  const isWorking = ({ member, isHostDown, isNodeReady }: Known) =>
    member.phase === 'ready' && isHostDown !== true && isNodeReady !== false;
  fc.assert(
    fc.property(fc.array(random), (members) => {
      const known = members
        .map(({ phase, ...rest }, index) => aMember(`m${index}`, phase, rest))
        .filter(
          ({ member: { phase } }) =>
            phase !== 'draining' && phase !== 'deleting' && phase !== 'gone',
        );
      const order = orderOf(known);
      const working = known.filter(isWorking).map(({ member }) => member.id as string);
      expect(new Set(order.slice(order.length - working.length))).toEqual(new Set(working));
    }),
  );
});
