// SPDX-License-Identifier: Apache-2.0
// The permission to delete seeds is missing. Commands still end, and report which seeds are left and why.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import {
  createProxmoxSim,
  makeCertificate,
  type ProxmoxSim,
  serveProxmoxSim,
} from '../../src/sim/proxmox/index.ts';
import { systemClock } from '../../src/system/index.ts';
import { listOwnedVms } from '../fleet-matrix/lab.ts';
import { configText, matrixCluster, TOKEN } from '../fleet-matrix/sources.ts';
import { aFolder, type RunResult, root } from '../support/pvescaler.ts';

const PERMISSION_DENIED = {
  kind: 'error',
  endpoint: 'DELETE /nodes/{node}/storage/{storage}/content/{volume}',
  status: 403,
  message: 'Permission check failed (/storage/shared, Datastore.Allocate)',
  times: 1_000,
} as const;

interface Lab {
  readonly sim: ProxmoxSim;
  readonly folder: string;
  run(...args: string[]): Promise<RunResult>;
}

async function startLab(): Promise<Lab> {
  const folder = aFolder();
  const random = new SeededRandom(1);
  const sim = createProxmoxSim({
    cluster: matrixCluster(),
    clock: systemClock,
    random,
    speed: 200,
  });
  const { cert, key, fingerprint } = makeCertificate(['127.0.0.1']);
  const served = await serveProxmoxSim(sim, { listen: '127.0.0.1:0', tls: { cert, key } });
  onTestFinished(() => served.close());
  writeFileSync(join(folder, 'token'), TOKEN, { mode: 0o600 });
  const config = configText('image', { folder, url: served.url, fingerprint });
  writeFileSync(join(folder, 'config.yaml'), `${config}intervals: { reconcile: 5s }\n`);
  const run = async (...args: string[]): Promise<RunResult> => {
    const program = join(root, 'bin/pvescaler.js');
    const child = spawn(process.execPath, [program, ...args, '-c', 'config.yaml'], {
      cwd: folder,
      env: { PATH: process.env['PATH'], HOME: '/nonexistent' },
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    const [out, err, [exitCode]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close') as Promise<[number | null]>,
    ]);
    return { exitCode, out, err };
  };
  return { sim, folder, run };
}

function countIsos({ sim }: Lab): number {
  return sim.inspect().volumes.filter(({ content }) => content === 'iso').length;
}

it('a seed that cannot be deleted is reported by pool scale and removed by orphans --fix later', async () => {
  const lab = await startLab();
  lab.sim.faults.add(PERMISSION_DENIED);
  const up = await lab.run('pool', 'scale', 'workers', '--to', '1');
  expect(up.out).toBe('pool workers has 1 machine\n');
  expect(up.err).toMatch(
    /cannot delete the seeds of ready machines: shared:iso\/.*Datastore\.Allocate/,
  );
  expect(up.err).toContain('[TASK_FAILED]');
  expect(up.exitCode).not.toBe(0);
  expect((await lab.run('machine', 'show', await readMachineName(lab))).out).toMatch(
    /^seed +shared:iso\//m,
  );

  // The machine's record and its VM are lost: only the seed itself is left.
  for (const end of ['', '-wal', '-shm']) {
    rmSync(join(lab.folder, `state/state.db${end}`), { force: true });
  }
  for (const { id } of listOwnedVms(lab.sim)) lab.sim.externalChanges.delete(id);
  const fix = await lab.run('orphans', '--fix');
  expect(fix.out).toMatch(/seed-without-machine +lab +shared:iso\//);
  expect(fix.err).toMatch(/could not be removed: .*Datastore\.Allocate/);
  expect(fix.exitCode).toBe(4);
  expect(countIsos(lab)).toBe(1);

  lab.sim.faults.clear();
  const fixed = await lab.run('orphans', '--fix');
  expect(fixed).toMatchObject({ exitCode: 0, out: 'no orphans\n' });
  expect(countIsos(lab)).toBe(0);
});

async function readMachineName(lab: Lab): Promise<string> {
  const machines = JSON.parse((await lab.run('machines', '--json')).out) as {
    placement: { name: string };
  }[];
  return machines[0]?.placement.name ?? 'none';
}
