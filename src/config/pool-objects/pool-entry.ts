// SPDX-License-Identifier: Apache-2.0
// A pool that is defined by a Kubernetes object: its spec has the keys of an entry of `pools`, and a few of its own.
import { accepted, type Parsed, refused } from '../../model/parsed.ts';
import { isMapping } from '../config-path.ts';

export interface PoolDefinition {
  readonly name: string;
  /** As the object has it. */
  readonly spec: Readonly<Record<string, unknown>>;
}

/** An entry of `pools` in the notation of the file. */
export type PoolEntry = Readonly<Record<string, unknown>>;

/** Number of machines of a pool that no autoscaler manages; undefined when one does. */
export function fixedSize({ autoscaling, replicas, limits }: PoolEntry): number | undefined {
  if (autoscaling !== false) return undefined;
  if (typeof replicas === 'number') return replicas;
  const min = isMapping(limits) ? limits['min'] : undefined;
  return typeof min === 'number' ? min : 0;
}

/** What the schema of the definition refuses, too, is checked here for API servers that do not evaluate its rules. */
export function poolEntry({ name, spec }: PoolDefinition): Parsed<PoolEntry> {
  const entry = omit(spec, ['autoscaling', 'replicas', 'deletionPolicy']);
  const size = fixedSize(spec);
  if (size === undefined) {
    return spec['replicas'] === undefined
      ? accepted({ ...entry, name })
      : refused(
          'spec.replicas is set, but an autoscaler manages the pool: set spec.autoscaling to false, or remove spec.replicas',
        );
  }
  const limits = isMapping(entry['limits']) ? entry['limits'] : {};
  const problem = findSizeProblem(size, limits) ?? findScheduleProblem(entry);
  if (problem !== undefined) return refused(problem);
  const clusterAutoscaler = isMapping(entry['clusterAutoscaler']) ? entry['clusterAutoscaler'] : {};
  return accepted({
    ...entry,
    name,
    limits: { ...limits, min: size, max: size },
    // The Cluster Autoscaler does not follow spec.replicas.
    clusterAutoscaler: { ...clusterAutoscaler, minKeptBy: 'pvescaler' },
  });
}

function findSizeProblem(
  size: number,
  { min, max }: Readonly<Record<string, unknown>>,
): string | undefined {
  if (typeof min === 'number' && size < min)
    return `spec.replicas is ${size}, less than limits.min ${min}`;
  return typeof max === 'number' && size > max
    ? `spec.replicas is ${size}, more than limits.max ${max}`
    : undefined;
}

function findScheduleProblem({ schedules }: PoolEntry): string | undefined {
  return Array.isArray(schedules) && schedules.length > 0
    ? 'spec.schedules change the limits of an autoscaled pool, but spec.autoscaling is false: remove one of them'
    : undefined;
}

function omit(mapping: PoolEntry, keys: readonly string[]): PoolEntry {
  return Object.fromEntries(Object.entries(mapping).filter(([name]) => !keys.includes(name)));
}
