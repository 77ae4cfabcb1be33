// SPDX-License-Identifier: Apache-2.0
// A cluster that carries out plans on virtual time: machines become ready after a while, a simple scheduler binds pods,
// evicted pods are created again. It checks that each step is allowed.

import { coversPod } from '../../model/disruption-budget.ts';
import type { MachineId } from '../../model/machine.ts';
import type { Node } from '../../model/node.ts';
import { type Pod, podKey, sortForEviction } from '../../model/pod.ts';
import { NO_RESOURCES } from '../../model/resources.ts';
import { checkFit, Snapshot, withoutPod, withPod } from '../../scheduling/index.ts';
import { decide } from '../decide.ts';
import { effectiveLimits } from '../effective-limits.ts';
import { sizedTemplate, topologyLabels } from '../expected-nodes.ts';
import {
  type CreateStep,
  type DrainStep,
  EMPTY_MEMORY,
  type Plan,
  rememberRequested,
  type ScalingHost,
  type ScalingInput,
  type ScalingMachine,
  type ScalingMemory,
  type ScalingPool,
} from '../index.ts';
import { aMachineId, anInput, MINUTE, NOW } from './builders.ts';

interface ModelMachine extends ScalingMachine {
  readonly host: { readonly region: string; readonly name: string };
}

export interface ModelOptions {
  readonly pools: readonly ScalingPool[];
  readonly hosts: readonly ScalingHost[];
  readonly settings?: Partial<ScalingInput['settings']>;
  readonly disruptionBudgets?: ScalingInput['disruptionBudgets'];
  /** Nodes that are not ours. */
  readonly nodes?: readonly Node[];
  readonly provisionMs?: number;
  /** Where a pod is scheduled that fits on these nodes. Absent: to the one with the most free CPU and memory. */
  readonly choose?: (pod: Pod, fits: readonly Node[], snapshot: Snapshot) => Node | undefined;
}

export class ModelCluster {
  readonly #options: ModelOptions;
  #machines: readonly ModelMachine[] = [];
  #memory: ScalingMemory = EMPTY_MEMORY;
  #lastId = 0;
  #lastPod = 0;
  /** The state in which no pending pod fits on a node. */
  #scheduled = '';
  #addedAt = new Map<string, number>();
  #pods: readonly Pod[] = [];
  now = NOW;
  /** Everything that was done, for messages of failed tests. */
  readonly log: string[] = [];

  constructor(options: ModelOptions) {
    this.#options = options;
  }

  get machines(): number {
    return this.#machines.length;
  }

  get pods(): readonly Pod[] {
    return this.#pods;
  }

  get pending(): readonly Pod[] {
    return this.#pods.filter(({ nodeName }) => nodeName === '');
  }

  add(pods: readonly Pod[]): void {
    this.#pods = [...this.#pods, ...pods.map((pod) => ({ ...pod, createdAt: this.now }))];
  }

  remove(isRemoved: (pod: Pod) => boolean): void {
    this.#pods = this.#pods.filter((pod) => !isRemoved(pod));
  }

  /** One pass: the scheduler, a decision, its steps, and time. */
  tick(ms: number): Plan {
    this.now += ms;
    this.#provision();
    this.schedule();
    const input = this.input();
    const { plan, memory } = decide(input);
    this.#memory = memory;
    const draining = plan.steps.filter((step): step is DrainStep => step.kind === 'drain');
    this.#checkDrains(input, draining);
    this.#checkBudgets(input, draining);
    for (const step of plan.steps) {
      this.log.push(`${(this.now - NOW) / 1_000}s ${step.reason}`);
      if (step.kind === 'create') this.#create(step);
      else if (step.kind === 'drain') this.#drain(step);
      else this.#machines = this.#machines.filter(({ id }) => id !== step.machine);
    }
    this.schedule();
    return plan;
  }

  input(): ScalingInput {
    const { pools, hosts, settings, disruptionBudgets, nodes = [] } = this.#options;
    return anInput({
      now: this.now,
      nodes: [...nodes, ...this.#nodes().values()],
      pods: this.#pods,
      machines: this.#machines,
      pools: pools.map((pool) => ({ ...pool, lastAddAt: this.#addedAt.get(pool.config.name) })),
      hosts: hosts.map((host) => this.#left(host)),
      memory: this.#memory,
      ...(settings !== undefined && { settings }),
      ...(disruptionBudgets !== undefined && { disruptionBudgets }),
    });
  }

  /** Binds pods in the order of their creation. */
  schedule(): void {
    const state = `${this.#machines.map(({ id, phase }) => id + phase).join()} ${this.#pods.length} ${this.pending.map(({ uid }) => uid).join()}`;
    if (state === this.#scheduled || this.pending.length === 0) return;
    this.#scheduled = state;
    const nodes = [...(this.#options.nodes ?? []), ...this.#nodes().values()];
    let snapshot = Snapshot.of({ nodes, pods: this.#pods });
    for (const pod of this.pending) {
      const fits = nodes.filter(({ name }) => checkFit(snapshot, pod, name).fits);
      const { choose = emptiestOf } = this.#options;
      const best = choose(pod, fits, snapshot);
      if (best === undefined) continue;
      snapshot = withPod(snapshot, pod, best.name);
      this.#pods = this.#pods.map((one) => (one === pod ? { ...pod, nodeName: best.name } : one));
    }
  }

  #pool(name: string): ScalingPool {
    const pool = this.#options.pools.find(({ config }) => config.name === name);
    if (pool === undefined) throw new Error(`there is no pool ${name}`);
    return pool;
  }

  #nodes(): ReadonlyMap<string, Node> {
    return new Map(
      this.#machines.flatMap(({ node, pool, size, host }) => {
        if (node === undefined) return [];
        const { config, learned } = this.#pool(pool);
        const { labels, taints, allocatable } = sizedTemplate({ config, learned }, size, {
          gpuLabel: 'gpu',
        });
        const one: Node = {
          name: node.name,
          labels: {
            ...topologyLabels(config, { region: host.region, host: host.name }),
            ...labels,
            'kubernetes.io/hostname': node.name,
          },
          taints,
          allocatable,
          isUnschedulable: false,
          declaredFeatures: [],
        };
        return [[node.name, one] as const];
      }),
    );
  }

  #left(host: ScalingHost): ScalingHost {
    const here = this.#machines.filter(
      (one) => one.host.name === host.name && one.host.region === host.region,
    );
    const pools = Object.entries(host.pools).map(([name, capacity]) => {
      const left = here.reduce(
        (rest, { size, pool }) => ({
          ...rest,
          cpus: rest.cpus - size.cpu,
          memoryBytes:
            rest.memoryBytes - size.memoryBytes - this.#pool(pool).config.memoryOverheadBytes,
          diskBytes: rest.diskBytes - size.diskBytes,
        }),
        capacity,
      );
      return [name, left] as const;
    });
    return { ...host, pools: Object.fromEntries(pools) };
  }

  #create({ pool, size, region, host, machines, replaces }: CreateStep): void {
    const requested = machines.map(({ pods }) => {
      const place = this.#placeFor(pool, size, host === undefined ? undefined : { region, host });
      this.#lastId += 1;
      const id = aMachineId(this.#lastId);
      this.#machines = [
        ...this.#machines,
        newMachine({ id, pool, size, host: place, at: this.now }),
      ];
      return { id, pods: pods.map(({ uid }) => uid) };
    });
    this.#addedAt.set(pool, this.now);
    this.#memory = rememberRequested(
      this.#memory,
      requested,
      replaces && { replaces, at: this.now },
    );
    this.#checkLimits(pool);
  }

  /** The named host, or the one with the fewest machines that has capacity, as the fleet finds it. */
  #placeFor(
    pool: string,
    size: ScalingMachine['size'],
    named: { readonly region: string | undefined; readonly host: string } | undefined,
  ): ModelMachine['host'] {
    const overhead = this.#pool(pool).config.memoryOverheadBytes;
    const countOn = ({ name }: ScalingHost): number =>
      this.#machines.filter(({ host }) => host.name === name).length;
    const found = this.#options.hosts
      .filter((host) => named === undefined || host.name === named.host)
      .toSorted((one, other) => countOn(one) - countOn(other))
      .map((host) => this.#left(host))
      .find((host) => {
        const capacity = host.pools[pool];
        return (
          capacity !== undefined &&
          capacity.cpus >= size.cpu &&
          capacity.memoryBytes >= size.memoryBytes + overhead &&
          capacity.diskBytes >= size.diskBytes
        );
      });
    if (found === undefined) throw new Error(`no host has capacity for a machine of pool ${pool}`);
    return found;
  }

  #checkLimits(name: string): void {
    const { config } = this.#pool(name);
    const members = this.#machines.filter(({ pool }) => pool === name);
    const sum = (amount: (size: ScalingMachine['size']) => number): number =>
      members.reduce((total, { size }) => total + amount(size), 0);
    const { max } = effectiveLimits(config, this.now);
    const { cpu, memoryBytes } = config.limits;
    if (members.length > max)
      throw new Error(`pool ${name} has ${members.length} of ${max} machines`);
    if (cpu > 0 && sum((size) => size.cpu) > cpu) throw new Error(`pool ${name} exceeds its vCPUs`);
    if (memoryBytes > 0 && sum((size) => size.memoryBytes) > memoryBytes)
      throw new Error(`pool ${name} exceeds its memory`);
  }

  #provision(): void {
    const { provisionMs = MINUTE } = this.#options;
    this.#machines = this.#machines.map((machine) => {
      if (machine.phase === 'ready' || this.now - machine.requestedAt < provisionMs) return machine;
      const name = machine.placement?.name ?? '';
      const node = { name, isReady: true, createdAt: this.now, annotations: {} };
      return { ...machine, phase: 'ready', readySince: this.now, node };
    });
  }

  /**
   * Every pod that will be evicted fits on the node named, one drain after the other. No pod moves to a drained node, which
   * exists until the drain is over.
   */
  #checkDrains(input: ScalingInput, steps: readonly DrainStep[]): void {
    const drained = new Set(steps.map(({ node }) => node));
    let snapshot = input.snapshot;
    for (const { node, moves } of steps) {
      const moved = new Set(moves.map(({ pod }) => pod.uid));
      const left = input.snapshot
        .podsOn(node)
        .filter((pod) => pod.controller?.kind !== 'DaemonSet' && !moved.has(pod.uid));
      if (left.length > 0) throw new Error(`${left.map(podKey).join()} on ${node} has no place`);
      const pods = moves.map(({ pod: name, to }) => {
        const pod = this.#pods.find(({ uid }) => uid === name.uid);
        if (pod === undefined) throw new Error(`there is no pod ${name.name}`);
        snapshot = withoutPod(snapshot, pod, node);
        return { name, to, waiting: { ...pod, nodeName: '' } };
      });
      for (const { name, to, waiting } of pods) {
        if (drained.has(to)) throw new Error(`${name.name} would move to ${to}, which is drained`);
        if (!checkFit(snapshot, waiting, to).fits)
          throw new Error(`${name.name} does not fit on ${to}`);
        snapshot = withPod(snapshot, waiting, to);
      }
    }
  }

  /** A budget that allows no disruption is not used; several nodes never use more than it allows. */
  #checkBudgets(input: ScalingInput, steps: readonly DrainStep[]): void {
    for (const budget of input.disruptionBudgets) {
      const used = steps.map(
        ({ node }) => input.snapshot.podsOn(node).filter((pod) => coversPod(budget, pod)).length,
      );
      const others = used.filter((count) => count > 0).slice(1);
      const [first = 0] = used.filter((count) => count > 0);
      const total = others.reduce((sum, count) => sum + count, Math.min(first, 1));
      if (total > budget.disruptionsAllowed)
        throw new Error(`budget ${budget.name} allows ${budget.disruptionsAllowed}, used ${total}`);
    }
  }

  #drain({ node, machine }: DrainStep): void {
    const allocatable = this.#nodes().get(node)?.allocatable ?? NO_RESOURCES;
    const evicted = this.#pods.filter(({ nodeName }) => nodeName === node);
    const created = sortForEviction(evicted, allocatable, (pod) => pod).map((pod) => {
      this.#lastPod += 1;
      const uid = `${pod.uid.split('#')[0]}#${this.#lastPod}`;
      return { ...pod, nodeName: '', uid, createdAt: this.now };
    });
    this.#pods = [...this.#pods.filter(({ nodeName }) => nodeName !== node), ...created];
    this.#machines = this.#machines.filter(({ id }) => id !== machine);
  }
}

function newMachine({
  id,
  pool,
  size,
  host,
  at,
}: {
  readonly id: MachineId;
  readonly pool: string;
  readonly size: ScalingMachine['size'];
  readonly host: ModelMachine['host'];
  readonly at: number;
}): ModelMachine {
  return {
    id,
    pool,
    size,
    host,
    phase: 'creating',
    requestedAt: at,
    isBeingDeleted: false,
    isDraining: false,
    placement: { region: host.region, host: host.name, name: `${pool}-${id.slice(-4)}` },
  };
}

function emptiestOf(_: Pod, fits: readonly Node[], snapshot: Snapshot): Node | undefined {
  const [best] = fits
    .map((node) => ({ node, used: usedShare(node, snapshot) }))
    .toSorted((a, b) => a.used - b.used || (a.node.name < b.node.name ? -1 : 1));
  return best?.node;
}

function usedShare(node: Node, snapshot: Snapshot): number {
  const pods = snapshot.podsOn(node.name);
  const cpu = pods.reduce((sum, { requests }) => sum + requests.cpuMilli, 0);
  const memory = pods.reduce((sum, { requests }) => sum + requests.memoryBytes, 0);
  return cpu / node.allocatable.cpuMilli + memory / node.allocatable.memoryBytes;
}
