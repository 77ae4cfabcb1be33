// SPDX-License-Identifier: Apache-2.0
// The day that the demo plays. A scene can also be the first one: it begins with what it needs of those before it.
import type { DashboardState } from '../../src/http/contract.ts';
import { formatCount } from '../../src/model/format-text.ts';
import type { DemoSite } from './site.ts';
import type { Timeline } from './timeline.ts';
import {
  areServicesRunning,
  createNeverFitting,
  createReport,
  createServices,
  isReportDone,
  NEVER_FITS,
  remove,
  scaleWeb,
} from './workloads.ts';

export interface Stage {
  readonly site: DemoSite;
  readonly timeline: Timeline;
  /** At maximum speed, without pauses for a reader. */
  readonly isOnce: boolean;
  readonly isStandalone: boolean;
  /** Rejects when the demo is stopped. After minutes it rejects with `--once`; otherwise the day goes on. */
  readonly waitUntil: (what: string, isDone: () => boolean | Promise<boolean>) => Promise<void>;
  /** Rejects when the demo is stopped. */
  readonly sleep: (ms: number) => Promise<void>;
  /** Time to look at the page. */
  readonly pause: (seconds: number) => Promise<void>;
}

export interface Scene {
  readonly name: string;
  readonly time: string;
  readonly title: string;
  readonly text: string;
  /** What to look at on the page. */
  readonly look: string;
  /** Instead, in mode externalgrpc, in which the page has no pending pods and no plan. */
  readonly lookExternal?: string;
  readonly play: (stage: Stage) => Promise<void>;
}

export const SCENES: readonly Scene[] = [
  {
    name: 'morning',
    time: '08:00',
    title: 'the morning wave',
    text: 'Eight pods are created in a cluster without nodes: web with 6 replicas, db with 2 replicas that must run on different nodes.',
    look: 'Pending pods with the machine each one will get; then Machines, where the bars show how long each phase takes.',
    lookExternal: 'Machines, where the bars show how long each phase takes.',
    play: startServices,
  },
  {
    name: 'batch',
    time: '11:00',
    title: 'a batch job',
    text: 'A job starts 6 pods of 1 CPU each. New machines run them; when the job is complete, machines that are not needed are drained and deleted.',
    look: 'Plan, which gives the reason of each machine that is created or drained, and the plot of nodes.',
    lookExternal: 'Decisions, with the requests of the Cluster Autoscaler, and the plot of nodes.',
    play: async (stage) => {
      const { site, timeline, isOnce } = stage;
      await startServices(stage);
      const before = timeline.count().readyNodes;
      createReport(site.kubernetes, isOnce ? 500 : 100);
      await stage.waitUntil('the job is complete', () => isReportDone(site.kubernetes));
      await stage.waitUntil('the machines of the job are deleted', () => {
        const { readyNodes, vms, pending } = timeline.count();
        return readyNodes <= before && vms === readyNodes && pending === 0;
      });
      remove(site.kubernetes, 'report');
    },
  },
  {
    name: 'host-fails',
    time: '14:00',
    title: 'a host fails',
    text: 'A Proxmox host loses power. Kubernetes notices that its nodes are silent and replaces their pods; pvescaler creates machines for them on the other hosts. It deletes none of the lost ones, since a host that is off proves nothing. Later the host returns, and its machines are started again.',
    look: 'Hosts, where one is offline; then Pending pods, with the machines on other hosts that each one will get.',
    lookExternal: 'Hosts, where one is offline; then Machines, for those on other hosts.',
    play: failHost,
  },
  {
    name: 'never-fits',
    time: '16:00',
    title: 'a pod that can never fit',
    text: 'A pod requests 400 CPUs. No machine is created for it, and the reason is given instead of trying again and again.',
    look: 'Pending pods: the reason for each pool. The decision is in the Plan and, as an Event, in kubectl describe pod.',
    lookExternal: 'Pools, which do not grow: the Cluster Autoscaler requests no machine.',
    play: refusePod,
  },
  {
    name: 'evening',
    time: '20:00',
    title: 'the evening',
    text: 'web is scaled to 1. Pods on machines that are hardly used move together, and the empty machines are deleted.',
    look: 'Machines that drain, and the cost per hour in Pools.',
    play: async (stage) => {
      const { site, timeline } = stage;
      await startServices(stage);
      const before = timeline.count().readyNodes;
      scaleWeb(site.kubernetes, 1);
      await stage.waitUntil('machines are deleted and every pod runs', () => {
        const { readyNodes, vms } = timeline.count();
        return readyNodes < before && vms === readyNodes && isEveryPodRunning(stage);
      });
      await stage.pause(5);
    },
  },
  {
    name: 'night',
    time: '23:00',
    title: 'the night',
    text: 'All workloads are deleted, and every machine with them: nothing runs, nothing costs.',
    look: 'Hosts, which are as empty as in the morning, and Decisions, the journal of the day.',
    play: async ({ site, timeline, waitUntil }) => {
      const { kubernetes } = site;
      const own = ['web', 'db', 'report', NEVER_FITS];
      for (const name of own) remove(kubernetes, name);
      await waitUntil('every machine is deleted', () => {
        const isEmpty = timeline.count().vms === 0 && kubernetes.list('v1', 'nodes').length === 0;
        // Of a person who uses kubectl already; those of the demo may still be terminating.
        const pods = kubernetes.list('v1', 'pods').map(({ metadata }) => metadata.name);
        return isEmpty || pods.some((pod) => !own.some((name) => pod.startsWith(`${name}-`)));
      });
    },
  },
];

async function startServices(stage: Stage): Promise<void> {
  createServices(stage.site.kubernetes);
  await stage.waitUntil('every pod runs', () => isEveryPodRunning(stage));
}

/** Of the services, as many as they have now: a person may scale them, and add other pods. */
function isEveryPodRunning({ site, timeline }: Stage): boolean {
  return areServicesRunning(site.kubernetes, timeline.readyNodes());
}

/** The first host has the only address at which the simulated Proxmox is reached. */
function chooseHost({ proxmox }: DemoSite): string {
  const vms = proxmox.inspect().vms.filter(({ id, host }) => id >= 1250 && host !== 'pve1');
  const count = (host: string) => vms.filter((vm) => vm.host === host).length;
  return count('pve3') > count('pve2') ? 'pve3' : 'pve2';
}

async function failHost(stage: Stage): Promise<void> {
  await startServices(stage);
  const { site, timeline, waitUntil } = stage;
  const host = chooseHost(site);
  const lost = site.proxmox.inspect().vms.filter((vm) => vm.host === host && vm.id >= 1250);
  timeline.row(`host ${host} loses power, with ${formatCount(lost.length, 'machine')}`);
  site.proxmox.externalChanges.hostDown(host);
  // New nodes may be ready before the last one of the host is found to be unreachable.
  await waitUntil('the nodes of the host are unreachable', () => {
    const ready = timeline.readyNodes();
    return !lost.some(({ config }) => ready.has(config['name'] ?? ''));
  });
  await waitUntil('every pod runs on another host', () => isEveryPodRunning(stage));
  await stage.pause(5);
  timeline.row(`host ${host} is on again`);
  site.proxmox.externalChanges.hostUp(host);
  await waitUntil('every machine has a ready node', () => {
    const { readyNodes, vms } = timeline.count();
    return vms === readyNodes && isEveryPodRunning(stage);
  });
}

async function refusePod(stage: Stage): Promise<void> {
  await startServices(stage);
  const { site, timeline, isStandalone } = stage;
  createNeverFitting(site.kubernetes);
  let reason: string | undefined;
  if (isStandalone) {
    await stage.waitUntil('the pod is refused with a reason', async () => {
      reason = await readReason(site);
      return reason !== undefined;
    });
    timeline.row(`refused: ${reason}`);
  } else {
    await stage.sleep(3_000);
    timeline.row('the Cluster Autoscaler finds no group where the pod fits');
  }
  await stage.pause(12);
  remove(site.kubernetes, NEVER_FITS);
}

async function readReason({ dashboardUrl }: DemoSite): Promise<string | undefined> {
  const response = await fetch(`${dashboardUrl}/api/v1/state`);
  if (!response.ok) return undefined;
  const { pending } = (await response.json()) as DashboardState;
  return pending.find(({ name }) => name.startsWith(`default/${NEVER_FITS}`))?.reason;
}
