// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { loadText, VALID } from '../testing/load-text.ts';
import { combinePools } from './combine-pools.ts';

const SIZE = { cpu: 2, memory: '4Gi' };

async function combine(text: string, ...objects: readonly (readonly [string, object])[]) {
  const definitions = objects.map(([name, spec]) => ({ name, spec: { ...spec } }));
  let loads = 0;
  const combined = await combinePools((pools) => {
    loads += 1;
    return Promise.resolve(loadText(text, { pools }));
  }, definitions);
  if (!combined.ok) return { problems: combined.problems };
  const { loaded, refused } = combined;
  const pools = loaded.config.pools.map(({ name }) => name);
  return { pools, refused: Object.fromEntries(refused), config: loaded.config, loads };
}

describe('combinePools', () => {
  it('appends the pools of objects to those of the file', async () => {
    const result = await combine(VALID, ['b', { size: SIZE }], ['a', { size: SIZE }]);
    expect(result).toMatchObject({ pools: ['small', 'b', 'a'], refused: {}, loads: 2 });
    expect(result.config?.pools[1]?.size).toEqual(result.config?.pools[0]?.size);
  });

  it('refuses an invalid file whatever the objects are', async () => {
    const { problems } = await combine(VALID.replace('cpu: 2', 'cpu: -1'), ['a', { size: SIZE }]);
    expect(problems?.map(({ path }) => path)).toEqual(['pools[0].size.cpu']);
  });

  it('leaves out invalid objects, each with its own reasons', async () => {
    const { pools, refused, loads } = await combine(
      VALID,
      ['bad-image', { size: SIZE, from: { image: 'nobel' } }],
      ['good', { size: SIZE }],
      ['bad-keys', { size: { cpu: 0, memory: '4Gi' }, onbot: true }],
    );
    expect(pools).toEqual(['small', 'good']);
    expect(refused).toEqual({
      'bad-image': {
        reason: 'Invalid',
        message: expect.stringMatching(/^spec\.from\.image: image 'nobel' is not defined/),
      },
      'bad-keys': {
        reason: 'Invalid',
        message: expect.stringMatching(/spec\.size\.cpu: .*spec\.onbot: /),
      },
    });
    expect(loads).toBe(6);
  });

  it('keeps the pool of the file when an object has its name', async () => {
    const { config, refused } = await combine(VALID, [
      'small',
      { size: { cpu: 8, memory: '8Gi' } },
    ]);
    expect(config?.pools.map(({ size }) => size.cpu)).toEqual([2]);
    expect(refused).toMatchObject({ small: { reason: 'NameInConfigFile' } });
  });

  it('refuses a name that is not a pool name', async () => {
    const { refused } = await combine(VALID, ['a.b', { size: SIZE }]);
    expect(refused).toMatchObject({ 'a.b': { message: expect.stringContaining('spec.name') } });
  });

  it('prefers the earlier of two objects that exclude each other', async () => {
    const sizes = 'sizes: { a: { cpu: 1, memory: 2Gi }, b: { cpu: 2, memory: 2Gi } }\n';
    const text = `mode: externalgrpc\ngrpc: { insecure: true }\n${sizes}${VALID}`;
    // The node groups of a list are x-a and x-b.
    const list = ['x', { size: ['a', 'b'] }] as const;
    const single = ['x-a', { size: SIZE }] as const;
    expect(await combine(text, single, list)).toMatchObject({
      pools: ['small', 'x-a'],
      refused: { x: { message: expect.stringContaining('spec.size[0]') } },
    });
    expect(await combine(text, list, single, ['y', { size: SIZE }])).toMatchObject({
      pools: ['small', 'x', 'y'],
      refused: {
        'x-a': { message: expect.stringMatching(/^pool x: spec\.size\[0\]: its node group/) },
      },
    });
  });
});

describe('a pool that no autoscaler manages', () => {
  const limitsOf = async (spec: object, text = VALID) => {
    const { config, refused } = await combine(text, ['a', { size: SIZE, ...spec }]);
    const pool = config?.pools[1];
    return pool === undefined
      ? refused?.['a']?.message
      : { min: pool.limits.min, max: pool.limits.max, minKeptBy: pool.minKeptBy };
  };

  it('has the size spec.replicas', async () => {
    const size = { autoscaling: false, replicas: 3 };
    const fixed = { min: 3, max: 3, minKeptBy: 'pvescaler' };
    expect(await limitsOf(size)).toEqual(fixed);
    const text = `mode: externalgrpc\ngrpc: { insecure: true }\n${VALID}`;
    const clusterAutoscaler = { minKeptBy: 'cluster-autoscaler' };
    expect(await limitsOf({ ...size, clusterAutoscaler }, text)).toEqual(fixed);
  });

  it('has the minimum size without spec.replicas', async () => {
    expect(await limitsOf({ autoscaling: false })).toMatchObject({ min: 0, max: 0 });
    const limits = { min: 2, max: 5 };
    expect(await limitsOf({ autoscaling: false, limits })).toMatchObject({ min: 2, max: 2 });
    expect(await limitsOf({ autoscaling: true, limits })).toMatchObject({ min: 2, max: 5 });
  });

  it.each([
    [{ replicas: 3 }, 'an autoscaler manages the pool'],
    [{ autoscaling: false, replicas: 6, limits: { min: 0, max: 5 } }, 'more than limits.max 5'],
    [{ autoscaling: false, replicas: 1, limits: { min: 2 } }, 'less than limits.min 2'],
    [{ autoscaling: false, replicas: -1 }, 'limits.min'],
    [
      { autoscaling: false, schedules: [{ start: '0 7 * * *', duration: '1h', max: 3 }] },
      'spec.schedules change the limits',
    ],
  ])('is refused with %j', async (spec, message) => {
    expect(await limitsOf(spec)).toContain(message);
  });
});
