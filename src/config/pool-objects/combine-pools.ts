// SPDX-License-Identifier: Apache-2.0
// Combines the pools of the config file with those that Kubernetes objects define. The file must be valid by itself; an
// object that is not valid together with it is left out and does not hold up the others.
import type { LoadedConfig, LoadFailure, LoadResult } from '../load/load-config.ts';
import type { Problem } from '../problem.ts';
import { type PoolDefinition, type PoolEntry, poolEntry } from './pool-entry.ts';

export interface PoolRefusal {
  readonly reason: 'Invalid' | 'NameInConfigFile';
  readonly message: string;
}

export interface CombinedConfig {
  readonly ok: true;
  readonly loaded: LoadedConfig;
  /** By name of the object: why it is left out. */
  readonly refused: ReadonlyMap<string, PoolRefusal>;
}

/** Loads the file with more entries at the end of `pools`. */
export type LoadWith = (pools: readonly PoolEntry[]) => Promise<LoadResult>;

interface Candidate {
  readonly name: string;
  readonly entry: PoolEntry;
}

/** Earlier definitions win where two exclude each other. */
export async function combinePools(
  load: LoadWith,
  definitions: readonly PoolDefinition[],
): Promise<CombinedConfig | LoadFailure> {
  const file = await load([]);
  if (!file.ok) return file;
  const refused = new Map<string, PoolRefusal>();
  const inFile = new Set(file.config.pools.map(({ name }) => name));
  const candidates: Candidate[] = [];
  for (const definition of definitions) {
    const { name } = definition;
    const parsed = poolEntry(definition);
    if (inFile.has(name)) refused.set(name, nameInConfigFile(name));
    else if (parsed.ok) candidates.push({ name, entry: parsed.value });
    else refused.set(name, { reason: 'Invalid', message: parsed.problem });
  }
  const accepted = await addValid({ load, refused, file }, { loaded: file, kept: [] }, candidates);
  return { ok: true, loaded: accepted.loaded, refused };
}

interface Combining {
  readonly load: LoadWith;
  readonly file: LoadedConfig;
  readonly refused: Map<string, PoolRefusal>;
}

interface Accepted {
  readonly loaded: LoadedConfig;
  readonly kept: readonly Candidate[];
}

/**
 * The same as adding one after the other, with few loads when few are invalid: a part that is valid as a whole is added as a
 * whole, another one is halved.
 */
async function addValid(
  combining: Combining,
  before: Accepted,
  candidates: readonly Candidate[],
): Promise<Accepted> {
  const [first] = candidates;
  if (first === undefined) return before;
  const kept = [...before.kept, ...candidates];
  const result = await combining.load(kept.map(({ entry }) => entry));
  if (result.ok) return { loaded: result, kept };
  if (candidates.length === 1) {
    const names = [...combining.file.file.pools, ...kept].map(({ name }) => name);
    combining.refused.set(first.name, { reason: 'Invalid', message: explain(result, names) });
    return before;
  }
  const half = Math.ceil(candidates.length / 2);
  const left = await addValid(combining, before, candidates.slice(0, half));
  return addValid(combining, left, candidates.slice(half));
}

/** The errors of the last entry, or of another one that it excludes. */
function explain({ problems }: LoadFailure, names: readonly string[]): string {
  const errors = problems.filter(({ severity }) => severity === 'error');
  const own = errors.filter(({ path }) => indexOf(path) === names.length - 1);
  return (own.length > 0 ? own : errors).map((problem) => formatProblem(problem, names)).join('; ');
}

function indexOf(path: string): number | undefined {
  const index = /^pools\[(\d+)\]/.exec(path)?.[1];
  return index === undefined ? undefined : Number(index);
}

/** With the path inside the object. */
function formatProblem({ path, message }: Problem, names: readonly string[]): string {
  const index = indexOf(path);
  const isOwn = index === names.length - 1;
  const root = isOwn ? 'spec' : `pool ${names[index ?? -1]}: spec`;
  const inside = index === undefined ? path : path.replace(/^pools\[\d+\]/, root);
  return inside === '' ? message : `${inside}: ${message}`;
}

function nameInConfigFile(name: string): PoolRefusal {
  return {
    reason: 'NameInConfigFile',
    message: `the config file has a pool ${name}, too, and it is the one in use: remove one of them`,
  };
}
