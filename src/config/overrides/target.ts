// SPDX-License-Identifier: Apache-2.0
// Resolves the target of an override rule to config paths: `<region>` is the only region, `*` every pool.
import { accepted, type Parsed, refused } from '../../model/parsed.ts';
import { type ConfigPath, isMapping } from '../config-path.ts';
import { quoteKey } from '../secrets/detect-secret.ts';
import type { TargetStep } from './override-rule.ts';

/** Name of a region or image that only variables define. */
export const DEFAULT_ENTRY_NAME = 'default';

export interface OverridePath {
  readonly path: ConfigPath;
  /** The region or image that must be created. */
  readonly created?: ConfigPath;
}

export function resolveTargets(
  tree: Readonly<Record<string, unknown>>,
  steps: readonly TargetStep[],
): Parsed<readonly OverridePath[]> {
  const [collection = '', choice] = steps;
  if (choice === '*') return accepted(poolTargets(tree[collection], steps));
  if (typeof choice !== 'string' || !choice.startsWith('<'))
    return accepted([{ path: [...steps] }]);
  const present = tree[collection];
  const names = isMapping(present) ? Object.keys(present) : [];
  const rest = steps.slice(2);
  const [only = DEFAULT_ENTRY_NAME] = names;
  if (names.length > 1) {
    return refused(
      `applies to a single ${choice.slice(1, -1)}, but there are ${names.length} (${names.map(quoteKey).join(', ')}); set the key in the file`,
    );
  }
  return accepted([
    {
      path: [collection, only, ...rest],
      ...(names.length === 0 && { created: [collection, only] }),
    },
  ]);
}

function poolTargets(pools: unknown, steps: readonly TargetStep[]): readonly OverridePath[] {
  const list: readonly unknown[] = Array.isArray(pools) ? pools : [];
  return list.map((_, index) => ({ path: ['pools', index, ...steps.slice(2)] }));
}
