// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it, onTestFinished } from 'vitest';
import type { PoolSettings } from '../fleet/index.ts';
import { NO_RESOURCES } from '../model/resources.ts';
import { aWorkerPool, type Process, SETTINGS, TestSite } from './testing/test-site.ts';

const MINUTE = 60;
const LIMITS = aWorkerPool().limits;

function aSite(...args: ConstructorParameters<typeof TestSite>): TestSite {
  const site = new TestSite(...args);
  onTestFinished(() => site.stop());
  return site;
}

async function aRunningSite(...args: ConstructorParameters<typeof TestSite>) {
  const site = aSite(...args);
  const process = site.start();
  await site.advance(5);
  return { site, process };
}

/** Machines that were ever requested. */
async function requested(site: TestSite): Promise<number> {
  return (await site.parts.store.intents.list())
    .map(({ value }) => value)
    .filter(({ kind }) => kind === 'create')
    .reduce((sum, { machines }) => sum + machines.length, 0);
}

describe('scale-up', () => {
  it('requests a machine for a pending pod, which then runs on its Node', async () => {
    const { site } = await aRunningSite();
    site.addPod('web');
    await site.advance(MINUTE);
    expect(await site.phases()).toEqual(['ready']);
    expect(site.nodeOf('web')).not.toBe('');
    expect(await requested(site)).toBe(1);
    const [intent] = await site.parts.store.intents.list();
    expect(intent?.value).toMatchObject({ requestedBy: 'autoscaler', kind: 'create' });
  });

  it('requests batch after batch, without an Event for pods that only wait for the next one', async () => {
    const pool = aWorkerPool();
    const { site } = await aRunningSite([{ ...pool, scaleUp: { ...pool.scaleUp, batchSize: 1 } }]);
    const requests = { ...NO_RESOURCES, cpuMilli: 1_500, pods: 1 };
    for (const name of ['a', 'b', 'c']) site.addPod(name, { requests, held: requests });
    await site.advance(10);
    expect(await requested(site)).toBe(3);
    const reasons = site.cluster.state.events.map(({ reason }) => reason);
    expect(reasons.filter((reason) => reason === 'TriggeredScaleUp')).toHaveLength(3);
    expect(reasons).not.toContain('NotTriggerScaleUp');
  });

  it('records the decision with the digest of its snapshot, and Events on the pod', async () => {
    const { site } = await aRunningSite();
    const pod = site.addPod('web');
    await site.advance(MINUTE);
    const entries = await site.parts.store.journal.read();
    expect(entries.find(({ reason }) => reason === 'ScaleUp')).toMatchObject({
      kind: 'did',
      subject: { pool: 'workers' },
      message: expect.stringContaining('default/web'),
      numbers: { machines: 1, digest: expect.stringMatching(/./) },
    });
    expect(site.cluster.state.events).toContainEqual(
      expect.objectContaining({
        reason: 'TriggeredScaleUp',
        regarding: { kind: 'Pod', namespace: 'default', name: 'web', uid: pod.uid },
      }),
    );
  });

  it('decides once for pods that arrive within the stabilization window', async () => {
    const { site } = await aRunningSite();
    for (let index = 0; index < 4; index += 1) {
      site.addPod(`web-${index}`);
      await site.advance(1);
    }
    expect(await requested(site)).toBe(0);
    await site.advance(10);
    const intents = await site.parts.store.intents.list();
    expect(intents.map(({ value }) => value.machines.length)).toEqual([2]);
  });

  it('does not postpone the decision for ever when new pods keep arriving', async () => {
    const { site } = await aRunningSite();
    for (let index = 0; index < 34; index += 1) {
      site.addPod(`web-${index}`);
      await site.advance(1);
    }
    expect(await requested(site)).toBeGreaterThan(0);
  });

  it('requests no second machine while the first one is being provisioned', async () => {
    const { site } = await aRunningSite();
    site.parts.guests.behaviour = { neverRegisters: true };
    site.addPod('web');
    await site.advance(3 * MINUTE);
    expect(await requested(site)).toBe(1);
  });

  it('explains a pod that fits no pool once, and requests nothing', async () => {
    const { site } = await aRunningSite();
    site.addPod('web', { nodeSelector: { disk: 'none' } });
    await site.advance(3 * MINUTE);
    expect(await requested(site)).toBe(0);
    const reasons = await site.reasons();
    expect(reasons.filter((reason) => reason === 'PodFitsNoPool')).toHaveLength(1);
    const events = site.cluster.state.events.filter(({ reason }) => reason === 'NotTriggerScaleUp');
    expect(events).toHaveLength(1);
  });

  it('takes another pool when the first one has no capacity', async () => {
    const small = aWorkerPool({ name: 'small', priority: 10, limits: LIMITS });
    const nowhere = { ...small.placement, hosts: { allow: ['pve9'], deny: [] } };
    const { site } = await aRunningSite([
      { ...small, placement: nowhere },
      aWorkerPool({ name: 'large' }),
    ]);
    site.addPod('web');
    await site.advance(2 * MINUTE);
    expect((await site.machines()).map(({ pool, phase }) => [pool, phase])).toEqual([
      ['large', 'ready'],
    ]);
  });

  it('never exceeds the maximum of the pool', async () => {
    const { site } = await aRunningSite([aWorkerPool({ limits: { ...LIMITS, max: 2 } })]);
    for (let index = 0; index < 8; index += 1) site.addPod(`web-${index}`);
    await site.advance(3 * MINUTE);
    expect(await site.phases()).toEqual(['ready', 'ready']);
    expect(await requested(site)).toBe(2);
    expect(site.pending()).toHaveLength(4);
  });

  it('places machines on the hosts that pods with anti-affinity need', async () => {
    const { site } = await aRunningSite();
    const selector = {
      selects: 'matching',
      requirements: [{ key: 'app', operator: 'In', values: ['db'] }],
    } as const;
    const term = {
      topologyKey: 'topology.kubernetes.io/zone',
      selector,
      namespaces: ['default'],
      namespaceSelector: { selects: 'nothing' },
    } as const;
    for (const name of ['db-0', 'db-1', 'db-2'])
      site.addPod(name, { labels: { app: 'db' }, antiAffinity: [term] });
    await site.advance(2 * MINUTE);
    const hosts = (await site.machines()).map(({ placement }) => placement?.host);
    expect(hosts.toSorted()).toEqual(['pve1', 'pve2', 'pve3']);
    expect(site.pending()).toEqual([]);
  });
});

describe('a view that cannot be trusted', () => {
  it('decides nothing while Kubernetes cannot be read, and goes on afterwards', async () => {
    const scaleUp = { ...aWorkerPool().scaleUp, stabilizationWindowMs: 2 * MINUTE * 1_000 };
    const { site } = await aRunningSite([aWorkerPool({ scaleUp })]);
    site.addPod('web');
    await site.advance(1);
    site.disconnect();
    await site.advance(5 * MINUTE);
    expect(await requested(site)).toBe(0);
    site.reconnect();
    await site.advance(2 * MINUTE);
    expect(await site.phases()).toEqual(['ready']);
  });

  it('requests no machine while Proxmox has not been read', async () => {
    const site = aSite();
    site.isProxmoxReadable = false;
    site.start();
    site.addPod('web');
    await site.advance(2 * MINUTE);
    expect(await requested(site)).toBe(0);
    // The pod is not refused either: nothing is known of the hosts yet.
    expect(await site.reasons()).not.toContain('PodWaitsForLimit');
    site.isProxmoxReadable = true;
    await site.advance(2 * MINUTE);
    expect(await site.phases()).toEqual(['ready']);
  });
});

describe('several processes', () => {
  it('request each machine once', async () => {
    const site = aSite();
    site.start('a');
    site.start('b');
    await site.advance(5);
    for (let index = 0; index < 4; index += 1) site.addPod(`web-${index}`);
    await site.advance(2 * MINUTE);
    expect(await requested(site)).toBe(2);
    expect(site.pending()).toEqual([]);
  });

  it.each([1, 5, 11, 12, 13, 20, 30])(
    'request each machine once when the driver is killed %s s after the pods arrived',
    async (seconds) => {
      const site = aSite();
      const first = site.start('a');
      await site.advance(5);
      for (let index = 0; index < 4; index += 1) site.addPod(`web-${index}`);
      await site.advance(seconds);
      first.kill();
      site.start('b');
      await site.advance(4 * MINUTE);
      expect(await requested(site)).toBe(2);
      expect(await site.phases()).toEqual(['ready', 'ready']);
      expect(site.pending()).toEqual([]);
    },
  );
});

describe('scale-down', () => {
  /** Two Nodes with one pod each: both pods fit on one. */
  async function halfUsedSite() {
    const { site, process } = await aRunningSite();
    const requests = { ...NO_RESOURCES, cpuMilli: 900, pods: 1 };
    for (const name of ['a', 'b', 'c', 'd']) site.addPod(name, { requests, held: requests });
    await site.advance(2 * MINUTE);
    const on = (node: string | undefined) =>
      [...site.cluster.state.pods.values()].filter(({ nodeName }) => nodeName === node);
    for (const node of site.cluster.state.nodes.keys()) {
      const [, ...others] = on(node);
      for (const pod of others) site.cluster.state.removePod(pod);
    }
    expect(site.cluster.state.pods.size).toBe(2);
    return { site, process };
  }

  it('drains an underutilized Node after its time, and its pod runs elsewhere', async () => {
    const { site } = await halfUsedSite();
    await site.advance(9 * MINUTE);
    expect(await site.phases()).toEqual(['ready', 'ready']);
    await site.advance(15 * MINUTE);
    expect(await site.phases()).toEqual(['gone', 'ready']);
    expect(site.evicted).toHaveLength(1);
    expect(site.pending()).toEqual([]);
    expect(await requested(site)).toBe(2);
  });

  it('remembers over a restart how long a Node has been unneeded', async () => {
    const { site, process } = await halfUsedSite();
    await site.advance(9 * MINUTE);
    expect(await site.phases()).toEqual(['ready', 'ready']);
    process.kill();
    site.start('b');
    await site.advance(6 * MINUTE);
    expect(await site.phases()).toEqual(['gone', 'ready']);
  });

  it('counts the time again when no process has decided for long', async () => {
    const { site, process } = await halfUsedSite();
    await site.advance(9 * MINUTE);
    process.kill();
    await site.advance(10 * MINUTE);
    site.start('b');
    await site.advance(6 * MINUTE);
    expect(await site.phases()).toEqual(['ready', 'ready']);
  });

  it('changes nothing afterwards for an hour', async () => {
    const { site } = await halfUsedSite();
    await site.advance(25 * MINUTE);
    const before = await site.parts.store.intents.list();
    await site.advance(60 * MINUTE);
    const after = (await site.parts.store.intents.list()).map(({ key }) => key);
    expect(after.filter((key) => !before.some((one) => one.key === key))).toEqual([]);
    expect(site.evicted).toHaveLength(1);
  });

  it('keeps a Node with a pod that must not be evicted', async () => {
    const { site } = await halfUsedSite();
    for (const pod of Array.from(site.cluster.state.pods.values()))
      site.cluster.state.putPod({ ...pod, eviction: { doNotDisrupt: true } });
    await site.advance(30 * MINUTE);
    expect(await site.phases()).toEqual(['ready', 'ready']);
    expect(site.evicted).toEqual([]);
  });

  it('drains nothing while Proxmox cannot be read', async () => {
    const { site } = await halfUsedSite();
    site.isProxmoxReadable = false;
    await site.advance(30 * MINUTE);
    expect(site.evicted).toEqual([]);
    expect(await site.phases()).toEqual(['ready', 'ready']);
  });

  it('removes all machines when no pod is left', async () => {
    const { site } = await halfUsedSite();
    for (const pod of Array.from(site.cluster.state.pods.values()))
      site.cluster.state.removePod(pod);
    await site.advance(30 * MINUTE);
    expect(await site.phases()).toEqual(['gone', 'gone']);
  });
});

describe('machines that cannot be emptied one by one', () => {
  /** Six small machines with a pod each, of which three fit on one large machine; pods prefer that. */
  async function fragmentedSite() {
    const { scaleDown, limits } = aWorkerPool();
    const settings = {
      scaleDown: { ...scaleDown, utilizationThreshold: 1 },
      limits: { ...limits, max: 10 },
    };
    const size = { cpu: 4, memoryBytes: 8 * 2 ** 30, diskBytes: 20 * 2 ** 30 };
    const sizes = { kind: 'choice' as const, sizes: [{ name: undefined, ...size }] };
    const { site, process } = await aRunningSite([
      aWorkerPool(settings),
      aWorkerPool({ ...settings, name: 'large', size, sizes, priority: 1 }),
    ]);
    const since = site.clock.now();
    const pause = { since, until: since + 60 * MINUTE * 1_000, reason: 'until the pods run' };
    await process.fleet.pausePool('large', pause);
    site.parts.guests.behaviour = { reportsVmSize: true };
    const requests = { ...NO_RESOURCES, cpuMilli: 1_200, memoryBytes: 2 ** 31, pods: 1 };
    for (let index = 0; index < 6; index += 1) {
      site.addPod(`web-${index}`, { requests, held: requests });
      await site.advance(2 * MINUTE);
    }
    expect(await ready(site)).toHaveLength(6);
    await process.fleet.resume('large', { by: 'cli', reason: 'the pods run' });
    return { site, process };
  }

  async function ready(site: TestSite) {
    return (await site.machines()).filter(({ phase }) => phase === 'ready');
  }

  it('are replaced by fewer, also over a restart, and then nothing changes any more', async () => {
    const { site, process } = await fragmentedSite();
    while ((await requested(site)) === 6) await site.advance(10);
    process.kill();
    site.start('b');
    await site.advance(90 * MINUTE);
    const left = await ready(site);
    expect(left.map(({ pool }) => pool)).toEqual(['large', 'large']);
    expect(site.evicted).toHaveLength(6);
    expect(site.pending()).toEqual([]);
    await site.advance(60 * MINUTE);
    expect((await ready(site)).map(({ id }) => id)).toEqual(left.map(({ id }) => id));
  });
});

describe('the circuit breaker', () => {
  it('says once of each pod that its pool is paused, not whenever the rest of the pause changes', async () => {
    const { site, process } = await aRunningSite();
    const since = site.clock.now();
    const pause = { since, until: since + 30 * MINUTE * 1_000, reason: 'three failed' };
    await process.fleet.pausePool('workers', pause);
    site.addPod('web');
    await site.advance(25 * MINUTE);
    const reasons = await site.reasons();
    expect(reasons.filter((reason) => reason === 'PodWaitsForLimit')).toHaveLength(1);
    expect(site.cluster.state.events).toHaveLength(1);
  });

  it('pauses a pool after three machines that never joined, until it is resumed', async () => {
    const pool = aWorkerPool({ provisionTimeoutMs: 60_000, registrationTimeoutMs: 60_000 });
    const { site, process } = await aRunningSite([pool]);
    site.parts.guests.behaviour = { neverRegisters: true };
    site.addPod('web');
    await untilPaused(site, process);
    const { pools } = await process.fleet.status();
    expect(pools[0]?.pause).toMatchObject({
      reason: expect.stringContaining('3 machines in a row'),
    });
    expect(await site.reasons()).toContain('PoolPaused');
    const before = await requested(site);
    await site.advance(10 * MINUTE);
    expect(await requested(site)).toBe(before);
    site.parts.guests.behaviour = {};
    await process.fleet.resume('workers', { by: 'cli', reason: 'repaired' });
    await site.advance(2 * MINUTE);
    expect((await process.fleet.status()).pools[0]?.pause).toBeUndefined();
  });

  it('counts machines whose deletion takes longer than the time between two decisions', async () => {
    const pool = aWorkerPool({ provisionTimeoutMs: 60_000, registrationTimeoutMs: 60_000 });
    const { site, process } = await aRunningSite([pool]);
    const { hypervisor, guests } = site.parts;
    const destroyVm = hypervisor.destroyVm.bind(hypervisor);
    hypervisor.destroyVm = async (vm, options) => {
      await site.clock.sleep(20_000);
      return destroyVm(vm, options);
    };
    guests.behaviour = { neverRegisters: true };
    site.addPod('web');
    await untilPaused(site, process);
    expect(await isPaused(process)).toBe(true);
    expect(await requested(site)).toBe(3);
  });

  it('counts machines of processes that ended', async () => {
    const pool = aWorkerPool({ provisionTimeoutMs: 60_000, registrationTimeoutMs: 60_000 });
    const { site, process } = await aRunningSite([pool]);
    site.parts.guests.behaviour = { neverRegisters: true };
    site.addPod('web');
    let last = process;
    for (let restart = 0; restart < 12 && !(await isPaused(last)); restart += 1) {
      await site.advance(4 * MINUTE);
      last.kill();
      last = site.start(`process-${restart}`);
      await site.advance(MINUTE);
    }
    expect(await isPaused(last)).toBe(true);
  });

  async function isPaused({ fleet }: Process): Promise<boolean> {
    return (await fleet.status()).pools[0]?.pause !== undefined;
  }

  async function untilPaused(site: TestSite, process: Process): Promise<void> {
    for (let minute = 0; minute < 60; minute += 1) {
      if (await isPaused(process)) return;
      await site.advance(MINUTE);
    }
  }
});

describe('settings that are replaced', () => {
  const settings = SETTINGS;
  const scanMs = 15_000;
  /** In fleet and autoscaler, as `serve` does it. */
  function replacePools(site: TestSite, { fleet, autoscaler }: Process, pools: PoolSettings[]) {
    fleet.replaceSettings({
      ...site.settings,
      holder: 'a',
      pools: Object.fromEntries(pools.map((pool) => [pool.name, pool])),
    });
    autoscaler.replaceSettings({ pools, settings, scanMs });
  }

  it('let pods that fitted no pool scale up one that was added', async () => {
    const { site, process } = await aRunningSite();
    const requests = { ...NO_RESOURCES, cpuMilli: 6_000, pods: 1 };
    site.addPod('big', { requests, held: requests });
    await site.advance(MINUTE);
    expect(await requested(site)).toBe(0);
    const size = { ...aWorkerPool().size, cpu: 8 };
    const sizes = { kind: 'choice' as const, sizes: [{ name: undefined, ...size }] };
    const large = aWorkerPool({ name: 'large', size, sizes });
    replacePools(site, process, [aWorkerPool(), large]);
    await site.advance(MINUTE);
    expect((await site.machines()).map(({ pool }) => pool)).toEqual(['large']);
  });

  it('keep the machines of a pool that was removed, and request no more of them', async () => {
    const { site, process } = await aRunningSite();
    site.addPod('web');
    await site.advance(MINUTE);
    expect(await site.phases()).toEqual(['ready']);
    replacePools(site, process, []);
    site.deletePod('web');
    for (let index = 0; index < 6; index += 1) site.addPod(`more-${index}`);
    await site.advance(30 * MINUTE);
    expect(await site.phases()).toEqual(['ready']);
    expect(site.pending().length).toBeGreaterThan(0);
    replacePools(site, process, [aWorkerPool()]);
    await site.advance(2 * MINUTE);
    expect(site.pending()).toEqual([]);
  });

  it('change the limits of a pool between two decisions, in both directions', async () => {
    const { site, process } = await aRunningSite();
    for (let index = 0; index < 8; index += 1) site.addPod(`web-${index}`);
    const limited = (max: number) => [aWorkerPool({ limits: { ...LIMITS, max } })];
    replacePools(site, process, limited(1));
    await site.advance(2 * MINUTE);
    expect(await site.phases()).toEqual(['ready']);
    replacePools(site, process, limited(3));
    await site.advance(2 * MINUTE);
    expect(await site.phases()).toEqual(['ready', 'ready', 'ready']);
    replacePools(site, process, limited(1));
    await site.advance(2 * MINUTE);
    expect(await site.phases()).toEqual(['ready', 'ready', 'ready']);
  });
});
