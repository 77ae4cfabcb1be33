// SPDX-License-Identifier: Apache-2.0
// One seed of random workloads without faults: they are created, then changed, then deleted. After each change every pod
// that can run runs, and then nothing happens for an hour. After the creation there are few nodes; later there may be more,
// since pods are moved to nodes that exist, not to a new one that would replace two others.
import { type ScalingInput, storeInput } from '../../src/scaling/index.ts';
import { areNodesFew, countMachinesNeeded } from '../support/machines-needed.ts';
import { type AutoscalerSeedResult, countTasks, endWorkloads } from './autoscaler-scenario.ts';
import { AutoscalerSite, isOfDaemonSet, poolSettings } from './autoscaler-site.ts';
import { DEDICATED, IMPOSSIBLE, randomWorkload } from './random-workload.ts';

const SETTLE_MINUTES = 45;
const QUIET_MINUTES = 60;
const HOST_CPUS = 96;
const MAX_MACHINES = 60;

const POOLS = [
  poolSettings('small', { cpu: 2 }),
  poolSettings('large', { cpu: 4 }),
  poolSettings(DEDICATED, {
    cpu: 4,
    taints: [{ key: DEDICATED, value: 'yes', effect: 'NoSchedule' }],
  }),
].map((pool) => ({
  ...pool,
  limits: { ...pool.limits, max: MAX_MACHINES },
  scaleDown: { ...pool.scaleDown, utilizationThreshold: 1 },
}));

export async function runWorkloadSeed(seed: number): Promise<AutoscalerSeedResult> {
  const site = new AutoscalerSite(seed, { pools: POOLS, hostCpus: HOST_CPUS });
  const pods = new Set<string>();
  try {
    site.startProcess();
    await site.advance(1);
    const { input } = await site.plan();
    const { hosts } = input;
    const isMovable = seed % 2 === 0;
    for (const change of [createWorkloads, changeWorkloads]) {
      change(site, isMovable);
      await settle(site, { hosts, isFew: isMovable && change === createWorkloads });
      for (const { metadata } of site.pods) pods.add(metadata.uid);
    }
    if (site.violations.length === 0) await endWorkloads(site);
  } finally {
    await site.close();
  }
  const { created, destroyed } = countTasks(site);
  const counts = { created, destroyed, evictions: site.evictions, pods: pods.size };
  return { seed, violations: site.violations, log: site.log, counts };
}

function createWorkloads(site: AutoscalerSite, isMovable: boolean, prefix = 'a'): void {
  const { random } = site;
  for (const { apiVersion, plural, body } of randomWorkload({ random, prefix, isMovable })) {
    site.record(`create ${plural} ${JSON.stringify(body)}`);
    site.kubernetes.create(apiVersion, plural, body as never);
  }
}

function changeWorkloads(site: AutoscalerSite, isMovable: boolean): void {
  const { kubernetes, random } = site;
  for (const plural of ['deployments', 'statefulsets']) {
    for (const { metadata } of kubernetes.list('apps/v1', plural)) {
      if (random.integer(3) === 0) continue;
      const { name } = metadata;
      const replicas = random.integer(6);
      site.record(`scale ${plural} ${name} to ${replicas}`);
      const body = { metadata: { name, namespace: 'default' }, spec: { replicas } };
      kubernetes.change('apps/v1', plural, body);
    }
  }
  if (random.integer(2) === 0) createWorkloads(site, isMovable, 'b');
}

interface Expected {
  /** Of the empty site. */
  readonly hosts: ScalingInput['hosts'];
  /** Whether there are as few nodes as a new cluster would need. */
  readonly isFew: boolean;
}

async function settle(site: AutoscalerSite, expected: Expected): Promise<void> {
  if (site.violations.length > 0) return;
  await site.advance(SETTLE_MINUTES);
  if (site.violations.length > 0) return;
  checkPending(site);
  await checkNodes(site, expected);
  const before = { ...countTasks(site), evictions: site.evictions };
  await site.advance(QUIET_MINUTES);
  checkPending(site);
  const after = { ...countTasks(site), evictions: site.evictions };
  if (JSON.stringify(after) !== JSON.stringify(before))
    site.report(`churn: ${JSON.stringify(before)} became ${JSON.stringify(after)}`);
}

function checkPending(site: AutoscalerSite): void {
  const waiting = site.pods
    .filter(({ status }) => (status as { phase?: string }).phase === 'Pending')
    .filter((pod) => !isOfDaemonSet(pod))
    .map(({ metadata }) => metadata.name)
    .filter((name) => !name.startsWith(IMPOSSIBLE));
  if (waiting.length > 0) site.report(`pods are pending: ${waiting.join(', ')}`);
}

/** Compares the nodes with those that `pack` needs for all pods in an empty cluster. */
async function checkNodes(site: AutoscalerSite, { hosts, isFew }: Expected): Promise<void> {
  const { input, objects, decision } = await site.plan();
  const needed = countMachinesNeeded(storeInput(input, objects), hosts);
  const nodes = input.machines.length;
  site.record(`${site.pods.length} pods on ${nodes} nodes, ${needed} needed`);
  for (const { reason, subject } of decision.plan.refusals)
    if (subject.kind === 'node') site.record(reason);
  if (isFew && !areNodesFew(nodes, needed))
    site.report(`${nodes} nodes for ${site.pods.length} pods, of which ${needed} are needed`);
}
