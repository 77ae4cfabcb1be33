// SPDX-License-Identifier: Apache-2.0
// Releases of the real Cluster Autoscaler in front of the built `serve`: mutual TLS, exactly the rights of the manifests,
// simulated hosts, a real control plane. CLUSTER_AUTOSCALER names the binaries; without it every test is skipped.
import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { afterAll, beforeAll, describe, it, type TestContext } from 'vitest';
import { pvescaler } from '../support/pvescaler.ts';
import { type ControlPlane, startControlPlane, waitUntil } from './controlplane/index.ts';
import { type ProviderSite, startProvider } from './support/autoscaler/provider-site.ts';
import {
  BINARIES,
  HOW_TO_RUN,
  type RealAutoscalerOptions,
  startAutoscaler,
} from './support/autoscaler/real-autoscaler.ts';
import { type RunningWorkload, startPods, startReplicas } from './support/autoscaler/workload.ts';
import { listNodesOfPool, readReadiness } from './support/kube-objects.ts';
import { applyManifests } from './support/manifests.ts';
import { listLeftovers, listVmsOfPool } from './support/simulated-site.ts';

const LIMIT_MS = 240_000;
const PODS = 200;
const PODS_PER_MACHINE = 5;
const BUDGETS = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';

interface Pool {
  readonly name: string;
  readonly memory?: string;
  readonly min?: number;
  readonly hosts?: readonly string[];
}

const ANY_HOST = ['pve1', 'pve2', 'pve3', 'pve5'];
const POOLS: readonly Pool[] = [
  { name: 'plain' },
  // Three of these fit on pve4. Their machines waste less memory than those of `overflow`, so they are preferred.
  { name: 'tight', memory: '20Gi', hosts: ['pve4'] },
  { name: 'overflow', memory: '24Gi' },
  { name: 'silent' },
  { name: 'budget' },
  { name: 'restarted' },
  { name: 'minimum', min: 2 },
  { name: 'crowd' },
];

function renderPool({ name, memory = '2Gi', min = 0, hosts = ANY_HOST }: Pool): string {
  const lot = name === 'tight' || name === 'overflow' ? 'full-hosts' : name;
  return `
  - name: ${name}
    from: { image: noble }
    size: { cpu: 2, memory: ${memory}, disk: 20Gi }
    limits: { min: ${min}, max: 60 }
    labels: { lot: ${lot} }
    placement: { hosts: { allow: [${hosts.join(', ')}] } }`;
}

const isSkipped = BINARIES.length === 0;
if (isSkipped) process.stderr.write(`the real Cluster Autoscaler is not tested: ${HOW_TO_RUN}\n`);

describe.skipIf(isSkipped).each(isSkipped ? [HOW_TO_RUN] : BINARIES)(
  'the real Cluster Autoscaler (%s)',
  (path) => {
    let plane: ControlPlane;
    let provider: ProviderSite;
    beforeAll(async () => {
      plane = await startControlPlane();
      await applyManifests(plane);
      provider = await startProvider({
        plane,
        hosts: 5,
        guests: [{ match: 'silent-*', behaviour: 'hangs' }],
        pools: POOLS.map(renderPool).join(''),
        onTestFinished: () => undefined,
      });
    });
    afterAll(async () => {
      await provider?.close();
      await plane?.stop();
    });

    const start = (
      { onTestFinished }: Pick<TestContext, 'onTestFinished'>,
      options: Pick<RealAutoscalerOptions, 'flags' | 'certs'> = {},
    ) => startAutoscaler({ path, plane, provider, onTestFinished, ...options });
    const vms = (pool: string) => listVmsOfPool(provider.site, pool);
    const countReadyNodes = async (pool: string) =>
      (await listNodesOfPool(plane.api, pool)).filter((node) => readReadiness(node) === 'True')
        .length;
    const waitUntilRunning = (workload: RunningWorkload) =>
      waitUntil('all pods are running', () => workload.running(), LIMIT_MS);
    const waitUntilEmpty = (pool: string) =>
      waitUntil(
        `${pool} has no VM and no Node`,
        async () => vms(pool).length === 0 && (await listNodesOfPool(plane.api, pool)).length === 0,
        LIMIT_MS,
      );
    const report = (text: string) => void process.stderr.write(`${text}\n`);

    it('scales a pool from zero and back to zero without an error', {
      timeout: LIMIT_MS,
    }, async (context) => {
      const { expect } = context;
      const autoscaler = await start(context);
      report(`Cluster Autoscaler ${await autoscaler.version()}`);
      const started = performance.now();
      const workload = await startPods(plane.api, {
        name: 'plain',
        count: 3,
        nodeSelector: { lot: 'plain' },
      });
      await waitUntilRunning(workload);
      report(`3 machines after ${Math.round((performance.now() - started) / 1000)} s`);
      expect(vms('plain')).toHaveLength(3);
      await workload.remove();
      await waitUntilEmpty('plain');
      expect(await autoscaler.metric('cluster_autoscaler_scaled_up_nodes_total')).toBe(3);
      expect(await autoscaler.metric('cluster_autoscaler_errors_total')).toBe(0);
    });

    it('fills the hosts of one pool and uses another for the rest', {
      timeout: LIMIT_MS,
    }, async (context) => {
      const { expect } = context;
      const autoscaler = await start(context);
      const workload = await startPods(plane.api, {
        name: 'full-hosts',
        count: 5,
        nodeSelector: { lot: 'full-hosts' },
      });
      await waitUntilRunning(workload);
      expect([vms('tight').length, vms('overflow').length]).toEqual([3, 2]);
      expect(await autoscaler.metric('cluster_autoscaler_failed_scale_ups_total')).toBe(0);
      await workload.remove();
      await Promise.all([waitUntilEmpty('tight'), waitUntilEmpty('overflow')]);
    });

    it('deletes a machine that never joins and does not order it again', {
      timeout: LIMIT_MS,
    }, async (context) => {
      const { expect } = context;
      const autoscaler = await start(context, { flags: { 'max-node-provision-time': '10s' } });
      const workload = await startPods(plane.api, {
        name: 'silent',
        count: 1,
        nodeSelector: { lot: 'silent' },
      });
      await waitUntil('the machine is created', () => vms('silent').length === 1, LIMIT_MS);
      await waitUntilEmpty('silent');
      expect(await autoscaler.metric('cluster_autoscaler_scaled_up_nodes_total')).toBe(1);
      await workload.remove();
    });

    it('keeps a node whose pods a disruption budget protects, and drains it without the budget', {
      timeout: LIMIT_MS,
    }, async (context) => {
      const { expect } = context;
      const autoscaler = await start(context);
      const nodeSelector = { lot: 'budget' };
      const large = await startPods(plane.api, { name: 'budget', count: 2, nodeSelector });
      await waitUntilRunning(large);
      const small = await startReplicas(plane.api, { name: 'kept', count: 2, nodeSelector });
      await waitUntilRunning(small);
      await plane.api.create(BUDGETS, {
        metadata: { name: 'kept' },
        spec: { minAvailable: 2, selector: { matchLabels: { app: 'kept' } } },
      });
      await large.remove();
      await autoscaler.waitForLog(/not enough pod disruption budget to move default\/kept-/);
      expect(vms('budget')).toHaveLength(2);
      await plane.api.delete(`${BUDGETS}/kept`);
      await waitUntil('one machine is left', () => vms('budget').length === 1, LIMIT_MS);
      await waitUntilRunning(small);
      await small.remove();
      await waitUntilEmpty('budget');
    });

    it('ends with the needed number of machines after a restart during a scale-up', {
      timeout: LIMIT_MS,
    }, async (context) => {
      const { expect } = context;
      const autoscaler = await start(context);
      const creations = provider.site.writes.filter(({ call }) => call.endsWith('/qemu')).length;
      const workload = await startPods(plane.api, {
        name: 'restarted',
        count: 3,
        nodeSelector: { lot: 'restarted' },
      });
      await provider.site.waitForCreations(creations + 1);
      await autoscaler.program.restart();
      await waitUntilRunning(workload);
      await waitUntil(
        'three machines are left',
        async () => vms('restarted').length === 3 && (await countReadyNodes('restarted')) === 3,
        LIMIT_MS,
      );
      expect(await workload.running()).toBe(true);
      await workload.remove();
      await waitUntilEmpty('restarted');
    });

    it('never goes below the minimum of a pool, and uses its nodes first', {
      timeout: LIMIT_MS,
    }, async (context) => {
      const { expect } = context;
      await waitUntil(
        'the minimum is ready',
        async () => (await countReadyNodes('minimum')) === 2,
        LIMIT_MS,
      );
      const autoscaler = await start(context);
      const workload = await startPods(plane.api, {
        name: 'minimum',
        count: 3,
        nodeSelector: { lot: 'minimum' },
      });
      await waitUntilRunning(workload);
      expect(vms('minimum')).toHaveLength(3);
      expect(await autoscaler.metric('cluster_autoscaler_scaled_up_nodes_total')).toBe(1);
      await workload.remove();
      await waitUntil('the third machine is deleted', () => vms('minimum').length === 2, LIMIT_MS);
      await autoscaler.waitForLog(/Skipping minimum-\S+ - node group min size reached/);
      expect(vms('minimum')).toHaveLength(2);
    });

    it(`orders exactly ${PODS / PODS_PER_MACHINE} machines for ${PODS} pods`, {
      timeout: 2 * LIMIT_MS,
    }, async (context) => {
      const { expect } = context;
      const autoscaler = await start(context);
      const started = performance.now();
      const workload = await startReplicas(plane.api, {
        name: 'crowd',
        count: PODS,
        nodeSelector: { lot: 'crowd' },
        // Five fit on two CPUs, six do not.
        requests: { cpu: '380m', memory: '50Mi' },
      });
      await waitUntilRunning(workload);
      const seconds = Math.round((performance.now() - started) / 1000);
      report(`${vms('crowd').length} machines for ${PODS} pods after ${seconds} s`);
      expect(vms('crowd')).toHaveLength(PODS / PODS_PER_MACHINE);
      const ordered = await autoscaler.metric('cluster_autoscaler_scaled_up_nodes_total');
      expect(ordered).toBe(PODS / PODS_PER_MACHINE);
      await workload.remove();
      await waitUntilEmpty('crowd');
    });

    it('is refused with a certificate of another name, and nothing is created', {
      timeout: LIMIT_MS,
    }, async (context) => {
      const { expect } = context;
      const certs = join(plane.folder, 'other-client');
      mkdirSync(certs);
      for (const file of ['ca.crt', 'ca.key'])
        copyFileSync(join(provider.certs, file), join(certs, file));
      const made = pvescaler(['certs', '--output', certs, '--client', 'other-client']);
      expect(made).toMatchObject({ exitCode: 0 });
      const autoscaler = await start(context, { certs });
      const workload = await startPods(plane.api, {
        name: 'refused',
        count: 1,
        nodeSelector: { lot: 'plain' },
      });
      await autoscaler.waitForLog(/PermissionDenied.*other-client/);
      expect(vms('plain')).toEqual([]);
      await workload.remove();
    });

    it('leaves only the minimum behind', async ({ expect }) => {
      const { vms: left, isos } = listLeftovers(provider.site);
      expect(left).toEqual(vms('minimum'));
      expect(isos).toEqual([]);
    });
  },
);
