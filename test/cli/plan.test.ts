// SPDX-License-Identifier: Apache-2.0
// `pvescaler plan`, `explain` and `replay` with a simulated Proxmox VE and a simulated Kubernetes API.
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { aKubernetesSim } from '../support/kubernetes-sim.ts';
import { aLab, start } from '../support/lab.ts';
import { pvescaler, root } from '../support/pvescaler.ts';

const JOIN = `
mode: standalone
join:
  k3s: { server: "https://192.0.2.1:6443", install: none }
`;

/** The simulated API runs in this process, so that it must not wait for the command. */
async function run(args: readonly string[]) {
  const child = start(args);
  const [out, err] = [child.stdout!, child.stderr!].map((stream) =>
    stream.setEncoding('utf8').toArray(),
  );
  const [code] = (await once(child, 'exit')) as [number];
  return { code, out: (await out!).join(''), err: (await err!).join('') };
}

async function aSite() {
  const { sim, kubeconfig } = await aKubernetesSim();
  const lab = await aLab({ join: 'k3s', config: JOIN });
  const options = ['--config', lab.path, '--kubeconfig', kubeconfig];
  sim.create('v1', 'pods', {
    metadata: { name: 'web', namespace: 'default' },
    spec: { containers: [{ name: 'main', resources: { requests: { cpu: '1' } } }] },
    status: { phase: 'Pending' },
  });
  return { lab, command: (...args: string[]) => run([...args, ...options]) };
}

it('plan shows the machine for a pending pod and requests nothing; replay shows the same', async () => {
  const { lab, command } = await aSite();
  const file = join(lab.folder, 'input.json');
  const plan = await command('plan', '--save', file);
  expect(plan).toMatchObject({ code: 0, err: expect.stringContaining(`wrote ${file}`) });
  expect(plan.out).toContain(
    'create   1 machine of pool workers (2 vCPUs, 2 GiB) for pod default/web, that fits on no node',
  );
  const replayed = await run(['replay', file]);
  expect(replayed).toEqual({ code: 0, err: '', out: plan.out });
  expect(JSON.parse((await run(['replay', file, '--json'])).out)).toMatchObject({
    steps: [{ kind: 'create', pool: 'workers' }],
  });
  expect(await run(['explain', 'pod', 'web', '--input', file])).toMatchObject({
    code: 0,
    err: '',
    out: expect.stringContaining('gets a new machine: 1 machine of pool workers'),
  });
  expect(JSON.parse((await command('machines', '--json')).out)).toEqual([]);
  const text = await readFile(file, 'utf8');
  await writeFile(file, text.replace('"web"', '"wob"'));
  expect(await run(['replay', file])).toMatchObject({
    code: 2,
    err: expect.stringContaining('was changed since pvescaler plan --save wrote it'),
  });
});

it('explain tells about a pod, a pool and a host, and does not find others', async () => {
  const { command } = await aSite();
  expect(await command('explain', 'pod', 'web')).toMatchObject({
    code: 0,
    out: expect.stringContaining('gets a new machine: 1 machine of pool workers'),
  });
  expect((await command('explain', 'pool', 'workers')).out).toContain(
    'has 0 machines, 0 ready; at least 0, at most 5',
  );
  expect((await command('explain', 'host', 'pve1', '--json')).out).toContain(
    'left for pool workers',
  );
  expect(await command('explain', 'pod', 'missing')).toMatchObject({
    code: 4,
    err: expect.stringContaining('there is no pod missing'),
  });
});

it('replay refuses a file that plan did not write', async () => {
  const { lab } = await aSite();
  expect(await run(['replay', lab.path])).toMatchObject({
    code: 2,
    err: expect.stringContaining('is not a file of pvescaler plan --save'),
  });
});

it('pool resume refuses a pool that is not paused', async () => {
  const { command } = await aSite();
  expect(await command('pool', 'resume', 'workers')).toMatchObject({
    code: 2,
    err: expect.stringContaining('pool workers is not paused'),
  });
});

it('explain accepts a unique prefix of the name of a node', () => {
  const file = join(root, 'examples/decisions/scale-down.json');
  const explain = (name: string) => pvescaler(['explain', 'node', name, '--input', file]);
  expect(explain('large-2')).toMatchObject({
    exitCode: 0,
    out: expect.stringMatching(/^node large-2193ec27\n/),
  });
  expect(explain('large-')).toMatchObject({
    exitCode: 2,
    err: expect.stringContaining(
      "the names of 2 nodes start with 'large-': large-2193ec27, large-f4023b31",
    ),
  });
  expect(explain('none')).toMatchObject({
    exitCode: 4,
    err: expect.stringContaining('there is no node none'),
  });
});
