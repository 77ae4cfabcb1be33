// SPDX-License-Identifier: Apache-2.0
// The command line as a user runs it: processes, sockets, a database file, a simulated site.
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, it } from 'vitest';
import { aLab, start } from '../support/lab.ts';

interface MachineJson {
  readonly id: string;
  readonly phase: string;
  readonly placement: { readonly name: string; readonly vmId: number };
}

/** `machines --watch --json` prints one line per change and nothing else. */
function watchMachines(path: string) {
  const child = start(['machines', '--watch', '--json', '--config', path]);
  const lines: string[] = [];
  const reader = createInterface(child.stdout!).on('line', (line) => lines.push(line));
  const until = async (matches: (machines: readonly MachineJson[]) => boolean) => {
    while (!lines.some((line) => matches(JSON.parse(line) as MachineJson[])))
      await once(reader, 'line');
  };
  return { lines, until };
}

it('pool scale creates and deletes machines, machines shows them, and orphans finds none', async () => {
  const { path, run } = await aLab();
  const up = run('pool', 'scale', 'workers', '--to', '3');
  expect(up).toMatchObject({ exitCode: 0, out: 'pool workers has 3 machines\n' });
  expect(up.err).toMatch(/workers-[0-9a-f]{8}: ready/);
  const machines = JSON.parse(run('machines', '--json').out) as MachineJson[];
  expect(machines.map(({ phase }) => phase)).toEqual(['ready', 'ready', 'ready']);
  const [first] = machines;
  expect(run('machine', 'show', first!.placement.name).out).toContain('MachineReady');
  expect(run('machines').out).toMatch(/ready +\S+ +pve\d +125\d +10\.10\.\d+\.\d+\/16$/m);
  expect(run('machine', 'show', first!.id).out).toMatch(/addresses +10\.10\.\d+\.\d+\/16/);
  expect(run('pools').out).toMatch(/workers\s+3\s+3\s+0\s+0\s+0-5/);
  const watched = watchMachines(path);
  await watched.until((machines) => machines.length === 3);
  expect(run('machine', 'delete', first!.id.slice(0, 8))).toMatchObject({
    exitCode: 0,
    out: '1 machine is gone\n',
  });
  await watched.until((machines) => machines.length === 2);
  expect(watched.lines.some((line) => line.includes('"deleting"'))).toBe(true);
  for (const [at, line] of watched.lines.entries()) expect(line).not.toBe(watched.lines[at - 1]);
  expect(run('pool', 'scale', 'workers', '--to', '9')).toMatchObject({ exitCode: 6 });
  expect(run('pool', 'scale', 'unknown', '--to', '1')).toMatchObject({ exitCode: 4 });
  expect(run('pool', 'scale', 'workers', '--to', '0').out).toBe('pool workers has 0 machines\n');
  expect(run('orphans')).toMatchObject({ exitCode: 0, out: 'no orphans\n' });
});

it('pool scale --size scales one node group of a pool with a list of sizes in mode externalgrpc', async () => {
  const { path, run } = await aLab({
    config: `mode: externalgrpc
grpc: { insecure: true }
sizes:
  small: { cpu: 1, memory: 1Gi, disk: 20Gi }
  large: { cpu: 2, memory: 2Gi, disk: 20Gi }
`,
  });
  const config = readFileSync(path, 'utf8');
  writeFileSync(path, config.replace(/size: \{.*\}/, 'size: [small, large]'));
  const scale = (to: number, ...size: string[]) =>
    run('pool', 'scale', 'workers', '--to', String(to), ...size).out;
  expect(scale(2, '--size', 'small')).toBe('node group workers-small has 2 machines\n');
  expect(scale(1, '--size', 'cpu=2')).toBe('node group workers-large has 1 machine\n');
  expect(run('pools').out).toMatch(/workers\s+3\s+3\s.*workers-small 2, workers-large 1/);
  expect(scale(0, '--size', 'small')).toBe('node group workers-small has 0 machines\n');
  expect(scale(0)).toBe('pool workers has 0 machines\n');
});

it('pools counts the machines whose VM exists, and says when it can only count records', async () => {
  const { folder, run, request, sim } = await aLab();
  run('pool', 'scale', 'workers', '--to', '2');
  const [machine] = JSON.parse(run('machines', '--json').out) as {
    readonly placement: { readonly vmId: number; readonly host: string };
  }[];
  const vm = `/nodes/${machine!.placement.host}/qemu/${machine!.placement.vmId}`;
  await request('POST', `${vm}/status/stop`);
  const isDeleted = async () => (await request('DELETE', vm)).status === 200;
  while (!(await isDeleted())) await new Promise((resolve) => setTimeout(resolve, 50));
  const isGone = async () => (await request('GET', `${vm}/config`)).status !== 200;
  while (!(await isGone())) await new Promise((resolve) => setTimeout(resolve, 50));
  const counted = run('pools');
  expect(counted.out).toMatch(/workers\s+1\s+1\s+0\s+0\s+0-5\s+VMs of 1 more machine are gone/);
  expect(counted.err).toBe('');
  sim.kill('SIGKILL');
  await once(sim, 'exit');
  const recorded = run('pools');
  expect(recorded).toMatchObject({ exitCode: 0 });
  expect(recorded.out).toMatch(/workers\s+2\s+2/);
  expect(recorded.err).toMatch(
    /region lab cannot be read, so its machines are counted from the records: /,
  );
  rmSync(join(folder, 'token'));
  expect(run('pools')).toMatchObject({
    exitCode: 0,
    err: expect.stringContaining('region lab cannot be read') as unknown,
  });
});

it('commands that create no machines need no join token', async () => {
  const k3s = 'server: "https://192.0.2.1:6443", install: none';
  const { run } = await aLab({
    join: 'k3s',
    config: `join: { k3s: { ${k3s}, token: { secretFile: /nonexistent/token } } }`,
  });
  const up = run('pool', 'scale', 'workers', '--to', '1');
  expect(up.err).toContain('/nonexistent/token cannot be read (ENOENT)');
  expect(run('pool', 'scale', 'workers', '--to', '0')).toMatchObject({
    exitCode: 0,
    out: 'pool workers has 0 machines\n',
  });
  expect(run('orphans')).toMatchObject({ exitCode: 0, out: 'no orphans\n' });
});

/** Kills the command after `steps` lines of progress. */
async function killAfter(steps: number, path: string): Promise<void> {
  const child = start(['pool', 'scale', 'workers', '--to', '2', '--config', path]);
  const ended = once(child, 'close');
  let lineCount = 0;
  createInterface(child.stderr!).on('line', () => {
    lineCount += 1;
    if (lineCount === steps) child.kill('SIGKILL');
  });
  const [, signal] = (await ended) as [number | null, string | null];
  expect(signal).toBe('SIGKILL');
}

it('pool scale recovers from a kill and from a lost database', async () => {
  const { folder, path, run } = await aLab();
  for (const steps of [1, 2]) await killAfter(steps, path);
  expect(run('pool', 'scale', 'workers', '--to', '2').out).toBe('pool workers has 2 machines\n');
  for (const end of ['', '-wal', '-shm']) {
    rmSync(join(folder, `state/state.db${end}`), { force: true });
  }
  expect(run('orphans')).toMatchObject({ exitCode: 4 });
  expect(run('orphans', '--fix')).toMatchObject({ exitCode: 0, out: 'no orphans\n' });
  expect(run('pool', 'scale', 'workers', '--to', '2').out).toBe('pool workers has 2 machines\n');
  expect((JSON.parse(run('machines', '--json').out) as MachineJson[]).length).toBe(2);
  expect(run('pool', 'scale', 'workers', '--to', '0').out).toBe('pool workers has 0 machines\n');
  expect(run('orphans').out).toBe('no orphans\n');
});

it('a machine whose marker was removed is left, listed, adopted and deleted, or forgotten', async () => {
  const { run, request } = await aLab();
  run('pool', 'scale', 'workers', '--to', '1');
  const [machine] = JSON.parse(run('machines', '--json').out) as {
    readonly placement: { readonly vmId: number; readonly host: string };
  }[];
  const { vmId, host } = machine!.placement;
  const removeMarker = () =>
    request('PUT', `/nodes/${host}/qemu/${vmId}/config?description=my%20notes`);
  await removeMarker();
  const down = run('pool', 'scale', 'workers', '--to', '0');
  expect(down).toMatchObject({ exitCode: 8, out: 'pool workers has 0 machines\n' });
  expect(down.err).toContain(`pvescaler orphans forget ${vmId}`);
  const listed = run('orphans');
  expect(listed.exitCode).toBe(4);
  expect(listed.out).toMatch(/vm-left-alone +lab +VM \d+ +it has no marker, but/);
  expect(listed.out).toContain(
    `VM ${vmId}: run pvescaler orphans adopt ${vmId} or pvescaler orphans forget ${vmId}`,
  );
  expect(run('orphans', 'adopt', `${vmId}`).out).toContain('nothing was changed; add --yes');
  expect(run('orphans', 'adopt', `${vmId}`, '--yes')).toMatchObject({ exitCode: 0 });
  expect(run('pools').out).toMatch(/workers\s+1\s+1\s+0/);
  await removeMarker();
  expect(run('orphans', 'forget', `${vmId}`, '--yes')).toMatchObject({ exitCode: 8 });
  expect(run('pool', 'scale', 'workers', '--to', '0').exitCode).toBe(8);
  const forgotten = run('orphans', 'forget', `${vmId}`, '--yes', '--json');
  expect(JSON.parse(forgotten.out)).toMatchObject({ kind: 'forget', vmId, done: true });
  expect(run('orphans')).toMatchObject({ exitCode: 0, out: 'no orphans\n' });
  const { data } = await request('GET', `/nodes/${host}/qemu/${vmId}/config`);
  expect(data).toMatchObject({
    description: expect.stringMatching(/^my notes\npvescaler\/ignored/),
  });
  expect(data).not.toHaveProperty('tags');
});

it('pool scale, machine delete and orphans end with the reason when Proxmox cannot be read', async () => {
  const { folder, path, run } = await aLab();
  const valid = readFileSync(path, 'utf8');
  const [fingerprint = ''] = /([0-9A-F]{2}:){31}[0-9A-F]{2}/.exec(valid) ?? [];
  const changeConfig = (from: RegExp, to: string) => writeFileSync(path, valid.replace(from, to));
  const scale = ['pool', 'scale', 'workers', '--to', '1'];
  changeConfig(/tls: .*/, 'tls: {}');
  expect(run(...scale)).toMatchObject({
    exitCode: 7,
    err: expect.stringMatching(
      new RegExp(`SHA-256 fingerprint is ${fingerprint}[^]*tls.fingerprints.*TLS_NOT_TRUSTED`),
    ),
  });
  changeConfig(/endpoints: .*/, 'endpoints: ["https://127.0.0.1:1"]');
  expect(run('orphans')).toMatchObject({
    exitCode: 9,
    err: expect.stringMatching(/ECONNREFUSED[^]*PVE_UNREACHABLE/),
  });
  changeConfig(/$/, '');
  writeFileSync(join(folder, 'token'), '00000000-0000-4000-8000-00000000dead\n');
  for (const command of [scale, ['machine', 'delete', 'workers-12345678'], ['orphans', '--fix']]) {
    expect(run(...command)).toMatchObject({
      exitCode: 7,
      err: expect.stringMatching(/Check the token.*CREDENTIALS_REFUSED/),
    });
  }
});

it('commands say what keeps a pool from shrinking or growing', async () => {
  const { path, run } = await aLab({ min: 1 });
  expect(run('pool', 'scale', 'workers', '--to', '0')).toMatchObject({
    exitCode: 2,
    err: expect.stringContaining('Lower limits.min of the pool') as unknown,
  });
  run('pool', 'scale', 'workers', '--to', '1');
  const [machine] = JSON.parse(run('machines', '--json').out) as MachineJson[];
  expect(run('machine', 'delete', machine!.placement.name)).toMatchObject({
    exitCode: 0,
    err: expect.stringContaining('pool workers keeps a minimum of 1') as unknown,
  });
  writeFileSync(path, readFileSync(path, 'utf8').replace('memory: 2Gi', 'memory: 500Gi'));
  let pools = '';
  // The longer ones are for a loaded machine, on which the command may not try to place a machine in time.
  for (const timeout of ['5s', '30s', '120s']) {
    const scaled = run('pool', 'scale', 'workers', '--to', '3', '--timeout', timeout);
    expect(scaled.exitCode).toBe(10);
    pools = run('pools').out;
    if (pools.includes('host pve1')) break;
  }
  expect(pools).toMatch(/machines? waits?: host pve1: .*; host pve2: /);
  expect(run('machines').out).toMatch(/requested .*host pve1: /);
});
