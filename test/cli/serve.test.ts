// SPDX-License-Identifier: Apache-2.0
// `pvescaler serve` as a user runs it: a process, a simulated site, probes over HTTP, signals.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { describe, expect, it } from 'vitest';
import { METRIC_NAMES } from '../../src/ports/metric-table.ts';
import { aLab, start } from '../support/lab.ts';

interface Line {
  readonly level: string;
  readonly message: string;
  readonly [fact: string]: unknown;
}

interface Served {
  readonly process: ChildProcess;
  readonly lines: Line[];
  readonly url: string;
}

interface Shown {
  readonly placement: { readonly host: string; readonly vmId: number };
}

async function serve(path: string, ...args: string[]): Promise<Served> {
  const child = start(['serve', '--config', path, ...args]);
  const lines: Line[] = [];
  const started = Promise.withResolvers<string>();
  createInterface(child.stdout!).on('line', (text) => {
    const line = JSON.parse(text) as Line;
    lines.push(line);
    if (line.message === 'pvescaler starts') started.resolve(String(line['health']));
  });
  void once(child, 'exit').then(() => started.reject(new Error('it ended before it began')));
  return { process: child, lines, url: await started.promise };
}

/** Asks until the answer is as wanted; the time limit is the test's own. */
async function until(ask: () => Promise<boolean>): Promise<void> {
  while (!(await ask())) await new Promise((resolve) => setTimeout(resolve, 50));
}

async function answer(served: Served, path: string) {
  const response = await fetch(`${served.url}${path}`);
  return { status: response.status, text: await response.text() };
}

const isReady = (served: Served) => () =>
  answer(served, '/readyz').then(({ status }) => status === 200);

async function valueOf(served: Served, series: string): Promise<number | undefined> {
  const { text } = await answer(served, '/metrics');
  const line = text.split('\n').find((one) => one.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

async function ended({ process }: Served): Promise<number | null> {
  if (process.exitCode !== null) return process.exitCode;
  const [code] = (await once(process, 'exit')) as [number | null];
  return code;
}

describe('pvescaler serve', () => {
  it('keeps the minimum size, serves probes and metrics, and stops on SIGTERM', async () => {
    const { path, run } = await aLab({ min: 1 });
    const served = await serve(path);
    expect((await answer(served, '/healthz')).status).toBe(200);
    await until(isReady(served));
    const ready = 'pvescaler_machines{pool="workers",phase="ready"}';
    await until(async () => (await valueOf(served, ready)) === 1);
    expect(await valueOf(served, 'pvescaler_leader')).toBe(1);
    expect(await valueOf(served, 'pvescaler_pool_target_size{pool="workers"}')).toBe(1);
    const { text } = await answer(served, '/metrics');
    for (const name of METRIC_NAMES) expect(text).toContain(`# HELP ${name} `);
    expect(text).toMatch(/pvescaler_host_free_memory_bytes\{region="lab",host="pve1"\} [1-9]/);
    expect(text).toMatch(/pvescaler_orphans\{region="lab",kind="vm-left-alone"\} 0/);
    expect(text).toMatch(/pvescaler_provisioning_duration_seconds_count\{pool="workers"\} 1/);
    expect(text).toMatch(
      /pvescaler_provisioning_phase_duration_seconds_count\{pool="workers",phase="booting"\} 1/,
    );
    for (const line of text.trim().split('\n')) {
      expect(line).toMatch(/^($|#.*|[a-z_][a-z0-9_]*(\{.*\})? [-+0-9.eNaIinf]+)$/);
      if (line.startsWith('pvescaler_')) {
        const labels = line.replace(/ \S+$/, '').replace(/host="pve\d"/, '');
        expect(labels).not.toMatch(/125\d|pve1|pve2|workers-/);
      }
    }
    expect(text).toMatch(
      /pvescaler_proxmox_requests_total\{region="lab",endpoint="POST \/nodes\/\{host\}\/qemu",outcome="2xx"\} 1/,
    );
    served.process.kill('SIGTERM');
    expect(await ended(served)).toBe(0);
    expect(served.lines.at(-1)).toMatchObject({ message: 'pvescaler stopped' });
    expect(served.lines.some(({ reason }) => reason === 'MachineReady')).toBe(true);
    expect(served.lines.map((line) => line.message).join('\n')).toMatch(
      /without access to Kubernetes, pools keep their minimum size/,
    );
    // SIGTERM released the lease: the next driver does not wait for its expiry.
    expect(run('pool', 'scale', 'workers', '--to', '1').out).toBe('pool workers has 1 machine\n');
  });

  it('logs text with --log-format text, whatever the config says', async () => {
    const { path } = await aLab({ min: 0 });
    const child = start(['serve', '--config', path, '--log-format', 'text']);
    const [line] = (await once(createInterface(child.stdout!), 'line')) as [string];
    expect(line).toMatch(/^\d{4}-\d\d-\d\dT\S+Z INFO  pvescaler starts version=/);
    child.kill('SIGTERM');
    await once(child, 'exit');
  });

  it('recovers after SIGKILL, and carries out requests of the command line', async () => {
    const { path, run } = await aLab({ min: 2 });
    const first = await serve(path);
    await until(() =>
      valueOf(first, 'pvescaler_machines{pool="workers",phase="requested"}').then(
        (count) => count !== undefined,
      ),
    );
    first.process.kill('SIGKILL');
    await ended(first);
    const second = await serve(path);
    await until(isReady(second));
    expect(run('pool', 'scale', 'workers', '--to', '3').out).toBe('pool workers has 3 machines\n');
    expect(run('machines').out.match(/ready/g)).toHaveLength(3);
    const third = await serve(path);
    await until(isReady(third));
    expect(await valueOf(third, 'pvescaler_leader')).toBe(0);
    second.process.kill('SIGTERM');
    expect(await ended(second)).toBe(0);
    await until(async () => (await valueOf(third, 'pvescaler_leader')) === 1);
    expect(run('pool', 'scale', 'workers', '--to', '2').out).toBe('pool workers has 2 machines\n');
    expect(run('orphans').out).toBe('no orphans\n');
  });

  it('keeps machines when the VMs of all of them are gone, until pool confirm-lost', async () => {
    const { path, run, request } = await aLab({ config: 'cleanup: { lostAfter: 1s }' });
    expect(run('pool', 'scale', 'workers', '--to', '4')).toMatchObject({ exitCode: 0 });
    expect(run('pool', 'confirm-lost', 'workers')).toMatchObject({
      exitCode: 2,
      err: expect.stringMatching(/no machine of pool workers is kept as lost/) as unknown,
    });
    for (const { placement } of JSON.parse(run('machines', '--json').out) as Shown[]) {
      const vm = `/nodes/${placement.host}/qemu/${placement.vmId}`;
      await request('POST', `${vm}/status/stop`);
      await until(async () => {
        await request('DELETE', vm);
        return (await request('GET', `${vm}/config`)).status !== 200;
      });
    }
    const served = await serve(path);
    const lost = () => valueOf(served, 'pvescaler_pool_lost_machines{pool="workers"}');
    await until(async () => (await lost()) === 4);
    const held = () => served.lines.find(({ reason }) => reason === 'LostMachinesHeld');
    // The log line follows the record.
    await until(() => Promise.resolve(held() !== undefined));
    expect(held()).toMatchObject({
      level: 'error',
      pool: 'workers',
    });
    expect(run('pools').out).toMatch(/4 machines seem lost/);
    const shown = run('pool', 'confirm-lost', 'workers', '--dry-run', '--json');
    expect((JSON.parse(shown.out) as { machines: unknown[] }).machines).toHaveLength(4);
    expect(run('machines').out.match(/ready/g)).toHaveLength(4);
    expect(run('pool', 'confirm-lost', 'workers').out).toMatch(
      /^MACHINE .*\n(workers-.*\n){4}4 machines are gone\n$/,
    );
    await until(async () => (await lost()) === 0);
  });

  it('pool confirm-lost deletes nothing when the machines are back since the last driver', async () => {
    const { path, run, request } = await aLab({ config: 'cleanup: { lostAfter: 1s }' });
    expect(run('pool', 'scale', 'workers', '--to', '4')).toMatchObject({ exitCode: 0 });
    const shown = JSON.parse(run('machines', '--json').out) as Shown[];
    const configs = shown.map(
      ({ placement }) => `/nodes/${placement.host}/qemu/${placement.vmId}/config`,
    );
    const edit = (config: string, edited: Readonly<Record<string, string>>) =>
      request('PUT', `${config}?${new URLSearchParams(edited).toString()}`);
    const before = new Map<string, Readonly<Record<string, string>>>();
    for (const config of configs) {
      const { name, description } = (await request('GET', config)).data as Record<string, string>;
      before.set(config, { name: name!, description: description! });
      expect(await edit(config, { name: 'taken', description: 'over' })).toMatchObject({
        status: 200,
      });
    }
    const served = await serve(path);
    const lost = () => valueOf(served, 'pvescaler_pool_lost_machines{pool="workers"}');
    await until(async () => (await lost()) === 4);
    served.process.kill('SIGTERM');
    await ended(served);
    for (const [config, edited] of before) await edit(config, edited);
    expect(run('pool', 'confirm-lost', 'workers')).toMatchObject({
      exitCode: 2,
      err: expect.stringMatching(/no machine of pool workers is kept as lost/) as unknown,
    });
    expect(run('machines').out.match(/ready/g)).toHaveLength(4);
  });

  it('is healthy but not ready while Proxmox is unreachable, and reports the reason', async () => {
    const { path, sim } = await aLab();
    sim.kill('SIGKILL');
    await once(sim, 'exit');
    const served = await serve(path);
    expect((await answer(served, '/healthz')).status).toBe(200);
    await until(async () => {
      const { status, text } = await answer(served, '/readyz');
      return status === 503 && /Proxmox region lab: (?!not read yet)/.test(text);
    });
    served.process.kill('SIGINT');
    expect(await ended(served)).toBe(0);
  });

  it('exits with an error when the health port is in use', async () => {
    const { path, run } = await aLab();
    const served = await serve(path);
    const { port } = new URL(served.url);
    const { readFileSync, writeFileSync } = await import('node:fs');
    writeFileSync(path, readFileSync(path, 'utf8').replace('127.0.0.1:0', `127.0.0.1:${port}`));
    const { exitCode, out, err } = run('serve');
    expect(exitCode).toBe(3);
    // Warnings about the config are plain text; the error is in the log.
    expect(err).not.toContain('cannot listen');
    const lines = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Line);
    expect(lines.find(({ level }) => level === 'error')).toMatchObject({
      message: 'pvescaler cannot continue',
      error: {
        message: expect.stringMatching(
          /cannot listen on 127\.0\.0\.1:\d+ \(EADDRINUSE\)/,
        ) as unknown,
      },
    });
  });
});
