// SPDX-License-Identifier: Apache-2.0
// `pvescaler serve` while its config file changes, in the ways in which people and Kubernetes change files.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, it } from 'vitest';
import { RpcClient } from '../interop/client.ts';
import { aKubernetesSim } from '../support/kubernetes-sim.ts';
import { aLab, start } from '../support/lab.ts';

interface Line {
  readonly level: string;
  readonly message: string;
  readonly reason?: string;
  readonly pod?: string;
  readonly [fact: string]: unknown;
}

/** A running daemon, of which tests await log lines. */
class Served {
  readonly process: ChildProcess;
  readonly #lines: Line[] = [];
  readonly #isEnded: Promise<never>;
  #next = Promise.withResolvers<void>();

  constructor(path: string, ...args: readonly string[]) {
    this.process = start(['serve', '--config', path, ...args]);
    createInterface(this.process.stdout!).on('line', (text) => {
      this.#lines.push(JSON.parse(text) as Line);
      this.#next.resolve();
      this.#next = Promise.withResolvers();
    });
    this.#isEnded = once(this.process, 'exit').then(() => {
      throw new Error(`it has ended: ${JSON.stringify(this.#lines.slice(-3))}`);
    });
    this.#isEnded.catch(() => undefined);
  }

  /** The next line that matches; it and those before it are not returned again. */
  async line(isWanted: (line: Line) => boolean): Promise<Line> {
    for (;;) {
      const next = this.#next.promise;
      const index = this.#lines.findIndex(isWanted);
      if (index >= 0) return this.#lines.splice(0, index + 1).at(-1)!;
      await Promise.race([next, this.#isEnded]);
    }
  }

  withReason(reason: string): Promise<Line> {
    return this.line((line) => line.reason === reason);
  }

  withText(text: string): Promise<Line> {
    return this.line(({ message }) => message.includes(text));
  }

  async stop(): Promise<void> {
    this.process.kill('SIGTERM');
    await once(this.process, 'exit');
  }
}

const JOIN = `join:
  k3s: { server: "https://10.0.0.2:6443", version: v1.34.4+k3s1, install: none }
`;

async function answer(url: string, path: string): Promise<string> {
  return (await fetch(`${url}${path}`)).text();
}

it('applies a changed file, refuses an invalid one, and reads it again on SIGHUP', async () => {
  const { path, run } = await aLab();
  const original = readFileSync(path, 'utf8');
  const served = new Served(path);
  const url = String((await served.withText('pvescaler starts'))['health']);
  await served.withText('this process now drives the fleet');

  writeFileSync(path, original.replace('min: 0', 'min: 1'));
  expect((await served.withReason('ConfigApplied')).message).toBe(
    `config file ${path} applied; changed: pools.workers.limits.min`,
  );
  await served.withReason('MachineReady');

  writeFileSync(path, original.replace('min: 0', 'min: 9'));
  expect(await served.withReason('ConfigRefused')).toMatchObject({
    level: 'error',
    message: expect.stringContaining(`${path}:`),
  });
  const metrics = await answer(url, '/metrics');
  expect(metrics).toContain('pvescaler_config_reloads_total{outcome="applied"} 1');
  expect(metrics).toContain('pvescaler_config_reloads_total{outcome="invalid"} 1');
  expect(metrics).toContain('pvescaler_config_last_reload_successful 0');
  expect(metrics).toContain('pvescaler_pool_limit{pool="workers",bound="min"} 1');
  expect(await answer(url, '/readyz')).toContain('not applied, the settings in use stay');

  writeFileSync(path, original.replace('127.0.0.1:0', '127.0.0.1:1').replace('min: 0', 'min: 2'));
  expect((await served.withReason('ConfigRefused')).message).toContain(
    'http.health cannot change while pvescaler runs; restart it to apply the file',
  );

  writeFileSync(path, `${original.replace('join: none', 'join: k3s')}${JOIN}`);
  expect((await served.withReason('ConfigRefused')).message).toContain(
    'pools.workers.join cannot change while pvescaler runs',
  );

  writeFileSync(path, original.replace('min: 0', 'min: 1'));
  await served.withText('is valid again and has the settings in use');
  expect(await answer(url, '/metrics')).toContain('pvescaler_config_last_reload_successful 1');

  served.process.kill('SIGHUP');
  expect((await served.withReason('ConfigApplied')).message).toContain('no key has changed');

  writeFileSync(path, original.replace(/pools:[^]*$/, 'pools: []\n'));
  served.process.kill('SIGHUP');
  expect((await served.withReason('ConfigApplied')).message).toContain('changed: pools.workers');
  await served.withReason('PoolNotInConfig');
  expect(JSON.parse(run('pools', '--json').out)).toMatchObject([
    { name: 'workers', inConfig: false, machines: [expect.any(String)] },
  ]);
  await served.stop();
});

it('notices a file that is replaced by renaming, and a ConfigMap whose link is swapped', async () => {
  const { path, folder } = await aLab();
  const text = readFileSync(path, 'utf8');
  const mounted = join(folder, 'mounted');
  mkdirSync(mounted);
  const publish = (version: string, content: string) => {
    mkdirSync(join(mounted, `..${version}`));
    writeFileSync(join(mounted, `..${version}`, 'config.yaml'), content);
    symlinkSync(`..${version}`, join(mounted, '..data_tmp'));
    renameSync(join(mounted, '..data_tmp'), join(mounted, '..data'));
  };
  publish('1', text);
  symlinkSync('..data/config.yaml', join(mounted, 'config.yaml'));
  const configMap = new Served(join(mounted, 'config.yaml'));
  await configMap.withText('pvescaler starts');
  publish('2', text.replace('max: 5', 'max: 6'));
  expect((await configMap.withReason('ConfigApplied')).message).toContain(
    'pools.workers.limits.max',
  );
  await configMap.stop();

  const file = new Served(path);
  await file.withText('pvescaler starts');
  writeFileSync(`${path}~`, text.replace('max: 5', 'max: 7'));
  renameSync(`${path}~`, path);
  expect((await file.withReason('ConfigApplied')).message).toContain('pools.workers.limits.max');
  await file.stop();
});

it('serves the node groups of the changed file to the Cluster Autoscaler after its next Refresh', async () => {
  const { path } = await aLab({
    config: 'mode: externalgrpc\ngrpc: { listen: "127.0.0.1:0", insecure: true }\n',
  });
  const text = readFileSync(path, 'utf8');
  const served = new Served(path);
  const { message } = await served.withText('gRPC for the Cluster Autoscaler on port');
  const [, port] = /port (\d+)/.exec(message) ?? [];
  await served.withText('this process now drives the fleet');
  const pool = /pools:\n([^]*?)mode:/.exec(text)?.[1] ?? '';
  writeFileSync(path, text.replace(pool, `${pool}${pool.replace('workers', 'added')}`));
  expect((await served.withReason('ConfigApplied')).message).toContain('changed: pools.added');
  const client = new RpcClient(`127.0.0.1:${port}`, 'c.proto');
  // The worker thread gets its settings in a message.
  const names = async (): Promise<readonly string[]> => {
    await client.call('Refresh');
    return (await client.call('NodeGroups')).nodeGroups.map(({ id }: { id: string }) => id);
  };
  while ((await names()).length < 2);
  expect(await names()).toEqual(['workers', 'added']);
  client.close();
  await served.stop();
});

it('lets the standalone autoscaler use a pool that was added, and emits an Event', async () => {
  const { sim, kubeconfig } = await aKubernetesSim();
  const { path } = await aLab({ join: 'k3s', config: JOIN });
  sim.create('v1', 'pods', {
    metadata: { name: 'big', namespace: 'default' },
    spec: { containers: [{ name: 'c', image: 'i', resources: { requests: { cpu: '4' } } }] },
    status: {
      phase: 'Pending',
      conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }],
    },
  });
  const served = new Served(path, '--kubeconfig', kubeconfig);
  await served.line(({ pod }) => pod === 'default/big');
  const text = readFileSync(path, 'utf8');
  const pool = /pools:\n([^]*?)join:\n/.exec(text)?.[1] ?? '';
  const large = pool.replace('workers', 'large').replace('cpu: 2', 'cpu: 8');
  writeFileSync(path, text.replace(pool, `${pool}${large}`));
  await served.withReason('ConfigApplied');
  expect((await served.withReason('ScaleUp'))['pool']).toBe('large');
  expect(sim.list('events.k8s.io/v1', 'events')).toContainEqual(
    expect.objectContaining({ reason: 'ConfigApplied' }),
  );
});
