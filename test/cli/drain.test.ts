// SPDX-License-Identifier: Apache-2.0
// Commands that drain machines, with a simulated Proxmox VE and a simulated Kubernetes API; the test acts as kubelet.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { expect, it } from 'vitest';
import type { KubernetesSim } from '../../src/sim/kubernetes/index.ts';
import { aKubernetesSim } from '../support/kubernetes-sim.ts';
import { aLab, start } from '../support/lab.ts';

const JOIN = `
join:
  k3s: { server: "https://192.0.2.1:6443", install: none }
`;
const POD = { name: 'web-0', namespace: 'default' };
const BUDGET = { name: 'web', namespace: 'default' };

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 20));
}

/** The command and the lines that it has written to standard error. */
function run(words: string): { readonly child: ChildProcess; readonly lines: string[] } {
  const child = start(words.split(' '));
  const lines: string[] = [];
  createInterface(child.stderr!).on('line', (line) => lines.push(line));
  return { child, lines };
}

interface Shown {
  readonly id: string;
  readonly phase: string;
  readonly placement?: { readonly name: string };
}

function joinNode(sim: KubernetesSim, { id, placement }: Shown): string {
  const name = placement?.name ?? '';
  sim.create('v1', 'nodes', { metadata: { name }, spec: {} });
  sim.change('v1', 'nodes', {
    metadata: { name },
    status: {
      nodeInfo: { systemUUID: id },
      allocatable: { cpu: '2', memory: '2Gi', pods: '110' },
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  });
  return name;
}

function runPod(sim: KubernetesSim, nodeName: string): void {
  sim.create('v1', 'pods', { metadata: { ...POD, labels: { app: 'web' } }, spec: { nodeName } });
  sim.change('v1', 'pods', {
    metadata: POD,
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  });
  sim.create('policy/v1', 'poddisruptionbudgets', {
    metadata: BUDGET,
    spec: { selector: { matchLabels: { app: 'web' } } },
  });
  allowDisruptions(sim, 0);
}

/** As the controller of budgets does. */
function allowDisruptions(sim: KubernetesSim, disruptionsAllowed: number): void {
  const status = {
    observedGeneration: 1,
    disruptionsAllowed,
    desiredHealthy: 1,
    currentHealthy: 1,
  };
  sim.change('policy/v1', 'poddisruptionbudgets', { metadata: BUDGET, status });
}

it('pool scale waits for a PodDisruptionBudget, undoes the drain at its timeout, and ends when the budget allows', async () => {
  const { sim, kubeconfig } = await aKubernetesSim();
  const lab = await aLab({ join: 'k3s', config: JOIN });
  const scale = (options: string) =>
    run(`pool scale workers ${options} --config ${lab.path} --kubeconfig ${kubeconfig}`);
  const up = scale('--to 1');
  const machines = () => JSON.parse(lab.run('machines', '--json').out) as Shown[];
  await until(() => up.lines.some((line) => line.endsWith(': joining')));
  const name = joinNode(sim, machines()[0]!);
  expect(await once(up.child, 'exit')).toEqual([0, null]);
  runPod(sim, name);

  const blocked = scale('--to 0 --drain-timeout 3s');
  expect(await once(blocked.child, 'exit')).toEqual([15, null]);
  expect(blocked.lines).toEqual(
    expect.arrayContaining([
      `${name}: draining`,
      `${name}: waiting for default/web-0: PodDisruptionBudget web allows no disruption: it needs 1 healthy pods and has 1 currently`,
      expect.stringMatching(/was undone: it was not drained within 3s/),
      expect.stringMatching(/\[DRAIN_TIMED_OUT\]/),
    ]),
  );
  const [restored] = sim.list('v1', 'nodes');
  expect(JSON.stringify(restored?.['spec'])).not.toMatch(/draining|unschedulable/);
  expect(machines()).toMatchObject([{ phase: 'ready' }]);

  const down = scale('--to 0');
  await until(() => down.lines.some((line) => line.includes('waiting for default/web-0')));
  allowDisruptions(sim, 1);
  const isTerminating = () =>
    sim.list('v1', 'pods').some(({ metadata }) => metadata['deletionTimestamp'] !== undefined);
  await until(isTerminating);
  expect(machines()).toMatchObject([{ phase: 'draining' }]);
  sim.remove('v1', 'pods', POD);
  expect(await once(down.child, 'exit')).toEqual([0, null]);
  expect(sim.list('v1', 'nodes')).toEqual([]);
});

it('machine delete --no-drain deletes the machine with its pods', async () => {
  const { sim, kubeconfig } = await aKubernetesSim();
  const lab = await aLab({ join: 'k3s', config: JOIN });
  const options = `--config ${lab.path} --kubeconfig ${kubeconfig}`;
  const up = run(`pool scale workers --to 1 ${options}`);
  await until(() => up.lines.some((line) => line.endsWith(': joining')));
  const [machine] = JSON.parse(lab.run('machines', '--json').out) as Shown[];
  const name = joinNode(sim, machine!);
  await once(up.child, 'exit');
  runPod(sim, name);
  const down = run(`machine delete ${name} --no-drain ${options}`);
  expect(await once(down.child, 'exit')).toEqual([0, null]);
  expect(sim.list('v1', 'nodes')).toEqual([]);
  expect(sim.requests.filter((line) => line.includes('eviction'))).toEqual([]);
});

it('pool delete shows the machines of a removed pool, and deletes them with --yes', async () => {
  const lab = await aLab();
  expect(lab.run('pool', 'scale', 'workers', '--to', '2').exitCode).toBe(0);
  expect(lab.run('pool', 'delete', 'workers', '--yes')).toMatchObject({
    exitCode: 2,
    err: expect.stringContaining('pool workers is in the config'),
  });
  const config = readFileSync(lab.path, 'utf8');
  writeFileSync(lab.path, config.replace('name: workers', 'name: others'));
  const shown = lab.run('pool', 'delete', 'workers');
  expect(shown).toMatchObject({ exitCode: 0 });
  expect(shown.out).toContain(
    'nothing was changed; add --yes to delete the 2 machines of pool workers',
  );
  expect(lab.run('pool', 'delete', 'workers', '--yes')).toMatchObject({
    exitCode: 0,
    out: '2 machines are gone\n',
  });
  expect(lab.run('pool', 'delete', 'workers', '--yes').exitCode).toBe(4);
});

it('--no-drain and --drain-timeout exclude each other', async () => {
  const lab = await aLab();
  const run = lab.run(
    'pool',
    'scale',
    'workers',
    '--to',
    '0',
    '--no-drain',
    '--drain-timeout',
    '1s',
  );
  expect(run).toMatchObject({ exitCode: 2 });
});
