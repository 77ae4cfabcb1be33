// SPDX-License-Identifier: Apache-2.0
// Pools: names, references, limits.
import type { ConfigPath } from '../config-path.ts';
import { errorAt, type Finding, withDependencies } from '../issues/finding.ts';
import type { ConfigFile, PoolFile } from '../schema/index.ts';
import { quoteKey, quoteValue } from '../secrets/detect-secret.ts';
import type { CheckContext } from './check-context.ts';
import { checkNodeGroups } from './node-groups.ts';
import { checkPlacement } from './placement.ts';
import { checkPoolSize } from './pool-size.ts';
import { checkReference } from './references.ts';

const HOST_NAME_LENGTH = 63;
/** Eight digits of the machine id, or an ordinal up to 99999. */
const SUFFIX_LENGTH = { id: 8, ordinal: 5 } as const;

export function checkPools(file: ConfigFile, scope: CheckContext): readonly Finding[] {
  return file.pools.flatMap((pool, index) => {
    const path = ['pools', index];
    return [
      ...checkName(path, pool, file),
      ...checkReferences(path, pool, scope),
      ...checkFrom(path, pool, file),
      ...checkLimits(path, pool),
      ...checkLabels(path, pool),
      ...checkMinKeptBy(path, pool, file),
      ...checkPoolSize(path, pool, file),
      ...checkNodeGroups(path, pool, file),
      ...checkPlacement(path, pool, file),
    ];
  });
}

function checkName(path: ConfigPath, pool: PoolFile, file: ConfigFile): readonly Finding[] {
  const findings: Finding[] = [];
  const index = file.pools.indexOf(pool);
  if (file.pools.findIndex(({ name }) => name === pool.name) < index) {
    findings.push(errorAt([...path, 'name'], `pool ${quoteValue(pool.name)} is already defined`));
  }
  const { prefix = pool.name, role, suffix } = pool.names;
  const stem = role === undefined ? prefix : `${prefix}-${role}`;
  const length = stem.length + 1 + SUFFIX_LENGTH[suffix];
  if (length > HOST_NAME_LENGTH) {
    findings.push(
      errorAt(
        [...path, 'names'],
        `machine names would be ${length} characters long; host names have at most ${HOST_NAME_LENGTH} characters`,
      ),
    );
  }
  return findings;
}

function checkReferences(
  path: ConfigPath,
  pool: PoolFile,
  scope: CheckContext,
): readonly Finding[] {
  const regions = (pool.regions ?? []).flatMap((name, index) =>
    checkReference({
      path: [...path, 'regions', index],
      name,
      kind: 'region',
      section: 'proxmox',
      defined: scope.entryNames('proxmox'),
    }),
  );
  const sizes = [pool.size].flat().flatMap((size, index) =>
    typeof size === 'string'
      ? checkReference({
          path: Array.isArray(pool.size) ? [...path, 'size', index] : [...path, 'size'],
          name: size,
          kind: 'size',
          section: 'sizes',
          defined: scope.entryNames('sizes'),
        })
      : [],
  );
  return [...regions, ...sizes, ...checkSourceReference(path, pool, scope)];
}

export function checkSourceReference(
  path: ConfigPath,
  { from }: Pick<PoolFile, 'from'>,
  scope: CheckContext,
): readonly Finding[] {
  if (from === undefined || 'netboot' in from) return [];
  return 'image' in from
    ? checkReference({
        path: [...path, 'from', 'image'],
        name: from.image,
        kind: 'image',
        section: 'images',
        defined: scope.entryNames('images'),
      })
    : checkReference({
        path: [...path, 'from', 'template'],
        name: from.template,
        kind: 'template',
        section: 'templates',
        defined: scope.entryNames('templates'),
      });
}

function checkFrom(path: ConfigPath, pool: PoolFile, file: ConfigFile): readonly Finding[] {
  const findings: Finding[] = [];
  if (pool.from === undefined) {
    findings.push(
      withDependencies(
        [['images'], ['templates']],
        errorAt(
          path,
          "needs 'from': { image: … }, { template: … } or { netboot: {} }; there is no single image or template to use by default",
        ),
      ),
    );
  }
  if (pool.join === undefined) {
    findings.push(errorAt(path, "needs 'join', because there is more than one join recipe"));
  } else if (pool.join !== 'none' && file.join[pool.join] === undefined) {
    findings.push(
      withDependencies(
        [['join']],
        errorAt([...path, 'join'], `join recipe '${pool.join}' is not defined in 'join'`),
      ),
    );
  }
  return findings;
}

function checkLimits(path: ConfigPath, { limits, schedules }: PoolFile): readonly Finding[] {
  const findings: Finding[] = [];
  if (limits.min > limits.max) {
    findings.push(
      errorAt([...path, 'limits', 'min'], `min ${limits.min} is more than max ${limits.max}`),
    );
  }
  for (const [index, window] of schedules.entries()) {
    const min = window.min ?? limits.min;
    const max = window.max ?? limits.max;
    if (min > max) {
      findings.push(errorAt([...path, 'schedules', index], `min ${min} is more than max ${max}`));
    }
  }
  return findings;
}

function checkMinKeptBy(
  path: ConfigPath,
  { clusterAutoscaler }: PoolFile,
  { mode }: ConfigFile,
): readonly Finding[] {
  return mode === 'externalgrpc' || clusterAutoscaler.minKeptBy === 'pvescaler'
    ? []
    : [
        errorAt(
          [...path, 'clusterAutoscaler', 'minKeptBy'],
          'needs mode externalgrpc: in this mode no Cluster Autoscaler keeps the minimum',
        ),
      ];
}

function checkLabels(path: ConfigPath, pool: PoolFile): readonly Finding[] {
  const { labels, groupLabel, name } = pool;
  const own = Object.hasOwn(labels, groupLabel) ? labels[groupLabel] : undefined;
  return own === undefined || own === name
    ? []
    : [
        errorAt(
          [...path, 'labels', groupLabel],
          `is the groupLabel of the pool, so its value must be the pool name ${quoteKey(name)}`,
        ),
      ];
}
