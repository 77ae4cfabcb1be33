// SPDX-License-Identifier: Apache-2.0
// `pvescaler serve` with a simulated Proxmox VE and a simulated Kubernetes API; the test acts as the kubelet.
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, it } from 'vitest';
import { aKubernetesSim } from '../support/kubernetes-sim.ts';
import { aLab, start } from '../support/lab.ts';

const JOIN = `
join:
  k3s: { server: "https://192.0.2.1:6443", install: none }
`;

async function serve(path: string, ...more: string[]): Promise<string> {
  const child = start(['serve', '--config', path, ...more]);
  const started = Promise.withResolvers<string>();
  createInterface(child.stdout!).on('line', (text) => {
    const line = JSON.parse(text) as { message: string; health?: string };
    if (line.message === 'pvescaler starts') started.resolve(line.health ?? '');
  });
  void once(child, 'exit').then(() =>
    started.reject(new Error('pvescaler exited before it logged its start')),
  );
  return started.promise;
}

async function until(ask: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await ask())) await new Promise((resolve) => setTimeout(resolve, 50));
}

async function metric(url: string, series: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const line = text.split('\n').find((one) => one.startsWith(`${series} `));
  return Number(line?.slice(series.length + 1));
}

interface Shown {
  readonly id: string;
  readonly placement: { readonly name: string; readonly vmId: number };
}

it('creates a bootstrap token, patches the Node of a machine, and deletes it after the VM', async () => {
  const { sim, kubeconfig } = await aKubernetesSim();
  const lab = await aLab({
    join: 'k3s',
    config: JOIN,
    labels: '"node-role.kubernetes.io/worker": ""',
  });
  const url = await serve(lab.path, '--kubeconfig', kubeconfig);
  await until(async () => (await fetch(`${url}/readyz`)).status === 200);
  const scale = (size: number) => {
    const order = `pool scale workers --to ${size} --config ${lab.path} --kubeconfig ${kubeconfig}`;
    return start(order.split(' '));
  };
  const scaling = scale(1);
  const phase = (name: string) => metric(url, `pvescaler_machines{pool="workers",phase="${name}"}`);
  await until(async () => (await phase('joining')) === 1);
  const [secret] = sim.list('v1', 'secrets');
  expect(secret).toMatchObject({
    metadata: { namespace: 'kube-system' },
    type: 'bootstrap.kubernetes.io/token',
  });
  const [machine] = JSON.parse(lab.run('machines', '--json').out) as Shown[];
  const { name, vmId } = machine!.placement;
  sim.create('v1', 'nodes', {
    metadata: { name, labels: { 'autoscaler.proxmox/group': 'workers' } },
    spec: {
      taints: [
        {
          key: 'ignore-taint.cluster-autoscaler.kubernetes.io/pvescaler-starting',
          effect: 'NoSchedule',
        },
      ],
    },
  });
  sim.change('v1', 'nodes', {
    metadata: { name },
    status: {
      nodeInfo: { systemUUID: machine!.id.toUpperCase() },
      allocatable: { cpu: '2', memory: '2Gi', pods: '110' },
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  });
  expect(await once(scaling, 'exit')).toEqual([0, null]);
  expect(await phase('ready')).toBe(1);
  const [node] = sim.list('v1', 'nodes');
  expect(node).toMatchObject({
    metadata: { labels: { 'node-role.kubernetes.io/worker': '' } },
    spec: { providerID: `proxmox://lab/${vmId}` },
  });
  expect(JSON.stringify(node)).not.toContain(
    'ignore-taint.cluster-autoscaler.kubernetes.io/pvescaler-starting',
  );
  const other = await serve(lab.path, '--kubeconfig', kubeconfig, '--state', `${lab.folder}/b.db`);
  await until(async () => (await fetch(`${other}/readyz`)).status === 200);
  expect(await metric(other, 'pvescaler_leader')).toBe(0);
  expect(await metric(url, 'pvescaler_leader')).toBe(1);
  const down = scale(0);
  expect(await once(down, 'exit')).toEqual([0, null]);
  expect(sim.list('v1', 'nodes')).toEqual([]);
});

it('is not ready without access to Kubernetes, and reports which pools cannot grow', async () => {
  const lab = await aLab({ join: 'k3s', config: JOIN });
  const url = await serve(lab.path);
  let text = '';
  await until(async () => {
    const answer = await fetch(`${url}/readyz`);
    text = await answer.text();
    return answer.status === 503 && text.includes('there is none');
  });
  expect(text).toContain(
    'pool workers: no machine can be created, since joining a cluster needs access to Kubernetes',
  );
  expect(lab.run('pool', 'scale', 'workers', '--to', '1')).toMatchObject({ exitCode: 3 });
});

async function runCommand(...args: string[]) {
  const child = start(args);
  const out: string[] = [];
  const err: string[] = [];
  createInterface(child.stdout!).on('line', (line) => out.push(line));
  createInterface(child.stderr!).on('line', (line) => err.push(line));
  const [exitCode] = (await once(child, 'close')) as [number];
  return { exitCode, out: out.join('\n'), err: err.join('\n') };
}

it('the Proxmox token is read from the Secret that the config names', async () => {
  const { sim, kubeconfig } = await aKubernetesSim();
  const { path, folder } = await aLab({ config: `cluster: { kubeconfig: ${kubeconfig} }` });
  const config = readFileSync(path, 'utf8');
  const ref = 'idRef: { name: pve, key: id }, secretRef: { name: pve, key: secret }';
  writeFileSync(path, config.replace(/token: \{ id:.*\}/, `token: { ${ref} }`));
  const scale = () => runCommand('pool', 'scale', 'workers', '--to', '1', '--config', path);
  const missing = await scale();
  expect(missing.exitCode).not.toBe(0);
  expect(missing.err).toContain('Secret pvescaler/pve does not exist');
  expect(missing.err).toContain('kubectl -n pvescaler create secret generic pve --from-file=id=');
  const encoded = (text: string) => Buffer.from(text).toString('base64');
  const secret = readFileSync(join(folder, 'token'), 'utf8');
  sim.create('v1', 'namespaces', { metadata: { name: 'pvescaler' } });
  sim.create('v1', 'secrets', {
    metadata: { name: 'pve', namespace: 'pvescaler' },
    data: { id: encoded('scaler@pve!sim'), secret: encoded(secret) },
  });
  const scaled = await scale();
  expect(scaled, scaled.err).toMatchObject({ exitCode: 0, out: 'pool workers has 1 machine' });
});
