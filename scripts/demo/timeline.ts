// SPDX-License-Identifier: Apache-2.0
// The timeline of the demo: one row per event, with the number of VMs, nodes and pods after it.
import { performance } from 'node:perf_hooks';
import { type DemoSite, OTHER_VM_IDS } from './site.ts';
import { NEVER_FITS } from './workloads.ts';

type KubeObject = ReturnType<DemoSite['kubernetes']['list']>[number];

interface Counts {
  readonly vms: number;
  readonly readyNodes: number;
  readonly pending: number;
  readonly running: number;
  readonly succeeded: number;
}

const HEADER = '    time   VMs  nodes  pending  running  done  event';

function phaseOf(pod: KubeObject): string {
  return (pod['status'] as { readonly phase?: string } | undefined)?.phase ?? '';
}

function isTerminating({ metadata }: KubeObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}

function isOver(pod: KubeObject): boolean {
  return ['Succeeded', 'Failed'].includes(phaseOf(pod));
}

function isReady(node: KubeObject): boolean {
  const { conditions = [] } = (node['status'] ?? {}) as {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
}

function isCordoned(node: KubeObject): boolean {
  return (node['spec'] as { readonly unschedulable?: boolean } | undefined)?.unschedulable === true;
}

export class Timeline {
  readonly #site: DemoSite;
  readonly #startedAt = performance.now();
  #vms = new Map<number, string>();
  #nodes = new Map<string, string>();
  readonly #wasReady = new Set<string>();
  #pods = '';
  /** Names of pods that have run. */
  readonly ran = new Set<string>();
  readonly created = new Set<string>();
  mostNodes = 0;

  constructor(site: DemoSite) {
    this.#site = site;
  }

  writeHeader(): void {
    process.stdout.write(`${HEADER}\n${'-'.repeat(HEADER.length + 24)}\n`);
  }

  readyNodes(): ReadonlySet<string> {
    const nodes = this.#site.kubernetes.list('v1', 'nodes').filter(isReady);
    return new Set(nodes.map(({ metadata }) => metadata.name));
  }

  count(): Counts {
    const { kubernetes } = this.#site;
    const ready = this.readyNodes();
    const pods = kubernetes.list('v1', 'pods');
    // The status of a pod on a lost node is that of its last heartbeat.
    const live = pods.filter((pod) => {
      const node = (pod['spec'] as { readonly nodeName?: string }).nodeName;
      return !isTerminating(pod) && (node === undefined || ready.has(node) || isOver(pod));
    });
    const inPhase = (phase: string) => live.filter((pod) => phaseOf(pod) === phase).length;
    return {
      vms: this.#listVms().length,
      readyNodes: ready.size,
      pending: inPhase('Pending'),
      running: inPhase('Running'),
      succeeded: inPhase('Succeeded'),
    };
  }

  /** Writes a row for everything that changed since the last call. */
  update(): void {
    for (const pod of this.#site.kubernetes.list('v1', 'pods')) {
      if (pod.metadata.name.startsWith(NEVER_FITS)) continue;
      this.created.add(pod.metadata.uid);
      if (['Running', 'Succeeded'].includes(phaseOf(pod))) this.ran.add(pod.metadata.uid);
    }
    this.#updateVms();
    this.#updateNodes();
    const { pending, running, succeeded, readyNodes } = this.count();
    this.mostNodes = Math.max(this.mostNodes, readyNodes);
    const pods = [pending, running, succeeded].join(' ');
    if (pods !== this.#pods && this.#pods !== '') this.row('');
    this.#pods = pods;
  }

  #listVms() {
    return this.#site.proxmox.inspect().vms.filter(({ id }) => !OTHER_VM_IDS.includes(id));
  }

  #updateVms(): void {
    const now = new Map(this.#listVms().map(({ id, host }) => [id, `VM ${id} on ${host}`]));
    for (const [id, text] of now) if (!this.#vms.has(id)) this.row(`${text} created`);
    for (const [id, text] of this.#vms) if (!now.has(id)) this.row(`${text} deleted`);
    this.#vms = now;
  }

  #updateNodes(): void {
    const stateOf = (node: KubeObject) => {
      if (isCordoned(node)) return 'is being drained';
      if (isReady(node)) return 'is ready';
      return this.#wasReady.has(node.metadata.uid) ? 'is unreachable' : 'registered';
    };
    const nodes = this.#site.kubernetes.list('v1', 'nodes');
    const now = new Map(nodes.map((node) => [node.metadata.name, stateOf(node)]));
    for (const { metadata } of nodes.filter(isReady)) this.#wasReady.add(metadata.uid);
    for (const [name, state] of now) {
      if (this.#nodes.get(name) !== state) this.row(`Node ${name} ${state}`);
    }
    for (const name of this.#nodes.keys()) if (!now.has(name)) this.row(`Node ${name} deleted`);
    this.#nodes = now;
  }

  row(event: string): void {
    const { vms, readyNodes, pending, running, succeeded } = this.count();
    const seconds = ((performance.now() - this.#startedAt) / 1_000).toFixed(1);
    const cells = [
      `${seconds} s`.padStart(8),
      String(vms).padStart(5),
      String(readyNodes).padStart(6),
      String(pending).padStart(8),
      String(running).padStart(8),
      String(succeeded).padStart(5),
    ];
    process.stdout.write(`${cells.join(' ')}  ${event}\n`.replace(/ +\n$/, '\n'));
  }
}
