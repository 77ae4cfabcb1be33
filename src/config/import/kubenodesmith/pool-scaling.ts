// SPDX-License-Identifier: Apache-2.0
// Limits of a pool, and the scaling keys that KubeNodeSmith reads but never uses.

import { MACHINES_MAX } from '../../schema/pool-scaling.ts';
import { formatMiB } from '../output/amounts.ts';
import { isNull } from '../source/reader.ts';
import type { SourceSection } from '../source/tree.ts';
import { readDuration } from './duration.ts';
import type { NodePool } from './node-pool.ts';
import { noteUnknownKeys } from './unknown-keys.ts';

const MIN_NODES_NOTE =
  'only limits scale-down in the source system; in pvescaler this number of machines always exists';
const NO_EFFECT_NOTE = 'has no effect in the source system but takes effect in pvescaler';

export function mapPoolScaling(pool: NodePool): void {
  mapLimits(pool);
  const { context, section, root } = pool;
  const up = section.section('scaleUp');
  setUnusedKey(pool, up, {
    key: 'batchSize',
    path: [...root, 'scaleUp', 'batchSize'],
    kind: 'number',
  });
  setUnusedKey(pool, up, {
    key: 'stabilizationWindow',
    path: [...root, 'scaleUp', 'stabilizationWindow'],
    kind: 'duration',
  });
  noteUnknownKeys(context, up, ['batchSize', 'stabilizationWindow']);
  const down = section.section('scaleDown');
  context.writer.setFixedBehavior(
    [...root, 'scaleDown', 'when'],
    'empty',
    'removes only nodes without pods',
  );
  setUnusedKey(pool, down, {
    key: 'maxConcurrent',
    path: [...root, 'scaleDown', 'maxConcurrent'],
    kind: 'number',
  });
  setUnusedKey(pool, down, {
    key: 'drainTimeout',
    path: [...root, 'scaleDown', 'drainTimeout'],
    kind: 'duration',
  });
  noteUnknownKeys(context, down, ['maxConcurrent', 'drainTimeout']);
}

interface UnusedKey {
  readonly key: string;
  readonly path: readonly (string | number)[];
  readonly kind: 'number' | 'duration';
}

function setUnusedKey(
  { context }: NodePool,
  section: SourceSection,
  { key, path, kind }: UnusedKey,
): void {
  const tree = section.find(key);
  if (tree === undefined || isNull(tree)) return;
  const value = kind === 'number' ? context.reader.readInteger(tree) : readDuration(context, tree);
  if (value === undefined) return;
  context.writer.set(path, value, tree);
  context.writer.note(tree, 'imported-differently', NO_EFFECT_NOTE);
}

function mapLimits(pool: NodePool): void {
  const { context, section, root } = pool;
  const { writer, reader } = context;
  reader.expectKind(section.find('limits'), 'map');
  const limits = section.section('limits');
  const number = (key: string) => {
    const tree = limits.find(key);
    return reader.readNonNullInteger(tree) ?? 0;
  };
  const min = number('minNodes');
  const path = [...root, 'limits'];
  writer.set([...path, 'min'], min, limits.refTo('minNodes'));
  if (min > 0) writer.note(limits.refTo('minNodes'), 'imported-differently', MIN_NODES_NOTE);
  mapMaxNodes(pool, limits, { min, max: number('maxNodes') });
  writer.set([...path, 'cpu'], number('cpuCores'), limits.refTo('cpuCores'));
  writer.set([...path, 'memory'], formatMiB(number('memoryMiB')), limits.refTo('memoryMiB'));
  noteUnknownKeys(context, limits, ['minNodes', 'maxNodes', 'cpuCores', 'memoryMiB']);
}

function mapMaxNodes(
  { context, root, provider }: NodePool,
  limits: SourceSection,
  given: { readonly min: number; readonly max: number },
): void {
  const { min, max } = given;
  const where = limits.refTo('maxNodes');
  const unlimited = Math.min(provider.idCount, MACHINES_MAX);
  const effective = Math.max(max > 0 ? max : unlimited, min);
  context.writer.set([...root, 'limits', 'max'], effective, where);
  if (max <= 0) {
    context.writer.note(
      where,
      'imported-differently',
      `means no limit in the source system, but 0 disables a pool in pvescaler; ${effective} was set, the number of VM ids`,
    );
  } else if (max < min) {
    context.writer.note(
      where,
      'action-required',
      `is less than minNodes, which is an error in the source system; ${effective} was set`,
    );
  }
}
