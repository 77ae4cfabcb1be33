// SPDX-License-Identifier: Apache-2.0
// Limits of a pool, and the scaling keys that the program decodes and never looks at.

import { fromMiB } from '../ours/units.ts';
import { isNull } from '../source/reader.ts';
import type { Section } from '../source/tree.ts';
import { durationText } from './duration.ts';
import type { Pool } from './pool.ts';
import { noteUnknown } from './strict.ts';

const MACHINES_MAX = 10_000;
const MIN_NODES = 'only stops scale-down there; here that many machines are always kept';
const WITHOUT_EFFECT = 'has no effect there and takes effect here';

export function mapPoolScaling(pool: Pool): void {
  mapLimits(pool);
  const { context, section, root } = pool;
  const up = section.section('scaleUp');
  carryIdle(pool, up, {
    key: 'batchSize',
    path: [...root, 'scaleUp', 'batchSize'],
    kind: 'number',
  });
  carryIdle(pool, up, {
    key: 'stabilizationWindow',
    path: [...root, 'scaleUp', 'stabilizationWindow'],
    kind: 'duration',
  });
  noteUnknown(context, up, ['batchSize', 'stabilizationWindow']);
  const down = section.section('scaleDown');
  context.work.carryFixed(
    [...root, 'scaleDown', 'when'],
    'empty',
    'removes nodes without pods only',
  );
  carryIdle(pool, down, {
    key: 'maxConcurrent',
    path: [...root, 'scaleDown', 'maxConcurrent'],
    kind: 'number',
  });
  carryIdle(pool, down, {
    key: 'drainTimeout',
    path: [...root, 'scaleDown', 'drainTimeout'],
    kind: 'duration',
  });
  noteUnknown(context, down, ['maxConcurrent', 'drainTimeout']);
}

interface IdleKey {
  readonly key: string;
  readonly path: readonly (string | number)[];
  readonly kind: 'number' | 'duration';
}

function carryIdle({ context }: Pool, section: Section, { key, path, kind }: IdleKey): void {
  const tree = section.find(key);
  if (tree === undefined || isNull(tree)) return;
  const value = kind === 'number' ? context.read.integer(tree) : durationText(context, tree);
  if (value === undefined) return;
  context.work.carry(path, value, tree);
  context.work.note(tree, 'carried-differently', WITHOUT_EFFECT);
}

function mapLimits(pool: Pool): void {
  const { context, section, root } = pool;
  const { work, read } = context;
  read.expect(section.find('limits'), 'map');
  const limits = section.section('limits');
  const number = (key: string) => {
    const tree = limits.find(key);
    return tree === undefined || isNull(tree) ? 0 : (read.integer(tree) ?? 0);
  };
  const min = number('minNodes');
  const path = [...root, 'limits'];
  work.carry([...path, 'min'], min, limits.where('minNodes'));
  if (min > 0) work.note(limits.where('minNodes'), 'carried-differently', MIN_NODES);
  mapMaximum(pool, limits, { min, max: number('maxNodes') });
  work.carry([...path, 'cpu'], number('cpuCores'), limits.where('cpuCores'));
  work.carry([...path, 'memory'], fromMiB(number('memoryMiB')), limits.where('memoryMiB'));
  noteUnknown(context, limits, ['minNodes', 'maxNodes', 'cpuCores', 'memoryMiB']);
}

function mapMaximum(
  { context, root, provider }: Pool,
  limits: Section,
  given: { readonly min: number; readonly max: number },
): void {
  const { min, max } = given;
  const where = limits.where('maxNodes');
  const unlimited = Math.min(provider.ids, MACHINES_MAX);
  const effective = Math.max(max > 0 ? max : unlimited, min);
  context.work.carry([...root, 'limits', 'max'], effective, where);
  if (max <= 0) {
    context.work.note(
      where,
      'carried-differently',
      `no limit there, but 0 switches a pool off here: ${effective} was written, as many as there are VM ids`,
    );
  } else if (max < min) {
    context.work.note(
      where,
      'needs-you',
      `is less than minNodes, which stops the program there: ${effective} was written`,
    );
  }
}
