// SPDX-License-Identifier: Apache-2.0
// The pools that ProxmoxPool objects define, combined with those of the config file. Every replica does this; only the
// leader writes to the objects (reconcile-pool-objects.ts).
import { isDeepStrictEqual } from 'node:util';
import {
  type CombinedConfig,
  combinePools,
  type LoadedConfig,
  type LoadResult,
  type PoolDefinition,
  type PoolRefusal,
} from '../config/index.ts';
import type { PoolObject, PoolObjects } from '../ports/pool-objects.ts';
import type { ConfigSource } from './config-watcher.ts';

export interface DefinitionsOptions {
  readonly objects: Pick<PoolObjects, 'all'>;
  readonly source: Pick<ConfigSource, 'load'>;
  /** The config in use. */
  readonly current: () => LoadedConfig;
}

interface Combined extends CombinedConfig {
  readonly known: ReadonlySet<string>;
}

export class PoolDefinitions {
  readonly #options: DefinitionsOptions;
  #combined: Combined | undefined;

  constructor(options: DefinitionsOptions) {
    this.#options = options;
  }

  /** The text of the config file together with the objects as they are now. */
  async load(text: string | undefined): Promise<LoadResult> {
    const { objects, source } = this.#options;
    const defining = (objects.all() ?? []).filter(definesPool).toSorted(compareAge);
    const combined = await combinePools(
      (pools) => source.load(text, pools),
      defining.map(definitionOf),
    );
    if (!combined.ok) return combined;
    this.#combined = { ...combined, known: new Set(defining.map(versionOf)) };
    return combined.loaded;
  }

  /** Whether the objects differ from those that were combined last. */
  hasChanged(): boolean {
    const defining = (this.#options.objects.all() ?? []).filter(definesPool);
    return (
      defining.length !== this.#combined?.known.size || !defining.every((one) => this.isKnown(one))
    );
  }

  /** Whether it was combined as it is now. */
  isKnown(object: PoolObject): boolean {
    return this.#combined?.known.has(versionOf(object)) === true;
  }

  refusalOf({ name }: PoolObject): PoolRefusal | undefined {
    return this.#combined?.refused.get(name);
  }

  /** Whether the settings in use have the pool as this object defines it. */
  isInUse(object: PoolObject): boolean {
    if (!this.isKnown(object) || this.refusalOf(object) !== undefined) return false;
    const find = ({ file }: LoadedConfig) => file.pools.find(({ name }) => name === object.name);
    const used = find(this.#options.current());
    return (
      used !== undefined && isDeepStrictEqual(used, this.#combined && find(this.#combined.loaded))
    );
  }

  /** Whether the settings in use are those that follow from this object: its pool, or none of its name. */
  isApplied(object: PoolObject): boolean {
    const { pools } = this.#options.current().file;
    return this.isInUse(object) || pools.every(({ name }) => name !== object.name);
  }
}

/** Its machines stay when the object is deleted. */
export function isOrphaning({ spec }: PoolObject): boolean {
  return spec['deletionPolicy'] === 'Orphan';
}

/** A deleted object defines its pool until its machines are gone, so that they are drained with its settings. */
function definesPool(object: PoolObject): boolean {
  return !object.isTerminating || (object.isHeld && !isOrphaning(object));
}

function versionOf({ uid, generation, isTerminating }: PoolObject): string {
  return `${uid} ${generation} ${isTerminating}`;
}

function compareAge(a: PoolObject, b: PoolObject): number {
  return a.createdAt - b.createdAt || (a.name < b.name ? -1 : 1);
}

function definitionOf({ name, spec, isTerminating }: PoolObject): PoolDefinition {
  if (!isTerminating) return { name, spec };
  const limits = { ...(typeof spec['limits'] === 'object' && spec['limits']), min: 0, max: 0 };
  const closed = { autoscaling: true, replicas: undefined, schedules: [], limits };
  return { name, spec: { ...spec, ...closed } };
}
