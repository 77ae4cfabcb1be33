// SPDX-License-Identifier: Apache-2.0
// A scripted Cluster Autoscaler for `--mode externalgrpc`: the calls of the real one in their order, with much simpler
// decisions. It adds nodes for pods that the scheduler found no node for, and removes nodes that are empty.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, credentials, type ServiceError } from '@grpc/grpc-js';
import {
  fromJSON,
  loadSync,
  type MessageTypeDefinition,
  type MethodDefinition,
} from '@grpc/proto-loader';
import { milliValue, parseQuantity, wholeValue } from '../../src/model/quantity.ts';
import { systemClock } from '../../src/system/index.ts';
import type { DemoSite } from './site.ts';

const PROTO = join(import.meta.dirname, '../../proto/externalgrpc/cloud_provider.proto');
const SCAN_MS = 1_000;
const DEADLINE_MS = 5_000;
const EMPTY_MS = 4_000;
const OPTIONS = { keepCase: true, longs: Number, enums: String, defaults: true };

/** The fields of a Kubernetes Node that are needed here. */
const ALLOCATABLE = { keyType: 'string', type: 'Quantity', id: 2 };
const NODE_TYPE = fromJSON(
  {
    nested: {
      Quantity: { fields: { string: { type: 'string', id: 1 } } },
      Status: { fields: { allocatable: ALLOCATABLE } },
      Node: { fields: { status: { type: 'Status', id: 3 } } },
    },
  },
  OPTIONS,
)['Node'] as MessageTypeDefinition<object, TemplateNode>;

interface TemplateNode {
  readonly status: { readonly allocatable: Readonly<Record<string, { readonly string: string }>> };
}

interface Group {
  readonly id: string;
  readonly target: number;
  readonly max: number;
  readonly instances: readonly string[];
  readonly template: Amounts;
}

interface Amounts {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
}

type Methods = Readonly<Record<string, MethodDefinition<object, object>>>;
type KubeObject = ReturnType<DemoSite['kubernetes']['list']>[number];
// oxlint-disable-next-line typescript/no-explicit-any -- the shape is the proto file's
type Answer = Readonly<Record<string, any>>;

export class ClusterAutoscaler {
  readonly #kubernetes: DemoSite['kubernetes'];
  readonly #log: (text: string) => void;
  readonly #client: Client;
  readonly #methods: Methods;
  readonly #emptySince = new Map<string, number>();

  constructor({ grpc, kubernetes }: DemoSite, log: (text: string) => void) {
    this.#kubernetes = kubernetes;
    this.#log = log;
    const pem = (name: string) => readFileSync(join(grpc.certs, name));
    const secure = credentials.createSsl(pem('ca.crt'), pem('client.key'), pem('client.crt'));
    this.#client = new Client(grpc.address, secure);
    const services = loadSync(PROTO, OPTIONS);
    const name = Object.keys(services).find((one) => one.endsWith('.CloudProvider')) ?? '';
    this.#methods = services[name] as unknown as Methods;
  }

  /** Until the signal. A call that fails ends the loop, as in the real one; the next begins after a second. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#loop().catch(() => undefined);
      await systemClock.sleep(SCAN_MS, { signal }).catch(() => undefined);
    }
    this.#client.close();
  }

  async #loop(): Promise<void> {
    await this.#call('Refresh');
    const { nodeGroups } = await this.#call('NodeGroups');
    const groups: Group[] = [];
    for (const { id, maxSize } of nodeGroups) groups.push(await this.#readGroup(id, maxSize));
    await this.#grow(groups);
    await this.#shrink(groups);
  }

  async #readGroup(id: string, max: number): Promise<Group> {
    const { targetSize: target } = await this.#call('NodeGroupTargetSize', { id });
    const { instances } = await this.#call('NodeGroupNodes', { id });
    const { nodeBytes } = await this.#call('NodeGroupTemplateNodeInfo', { id });
    const { allocatable } = NODE_TYPE.deserialize(nodeBytes).status;
    const amount = (name: string) => allocatable[name]?.string ?? '0';
    const template = parseAmounts({ cpu: amount('cpu'), memory: amount('memory') });
    return { id, target, max, instances: instances.map((one: Answer) => one['id']), template };
  }

  async #grow(groups: readonly Group[]): Promise<void> {
    const registered = new Set(this.#kubernetes.list('v1', 'nodes').map(providerIdOf));
    const upcoming = groups.flatMap(({ template, target, instances }) => {
      const known = instances.filter((id) => registered.has(id)).length;
      return Array.from({ length: Math.max(0, target - known) }, () => ({ ...template }));
    });
    const pods = this.#kubernetes.list('v1', 'pods').filter(isUnschedulable).map(requestsOf);
    const left = pods.filter((pod) => !place(upcoming, pod));
    for (const { id, template, target, max } of groups) {
      const fresh: Amounts[] = [];
      for (const pod of left) {
        if (place(fresh, pod) || !place([{ ...template }], pod)) continue;
        fresh.push(subtract(template, pod));
      }
      const delta = Math.min(fresh.length, max - target);
      if (delta <= 0) continue;
      this.#log(`Cluster Autoscaler: NodeGroupIncreaseSize ${id} by ${delta}`);
      await this.#call('NodeGroupIncreaseSize', { id, delta });
      return;
    }
  }

  async #shrink(groups: readonly Group[]): Promise<void> {
    const now = systemClock.monotonic();
    const pods = this.#kubernetes.list('v1', 'pods').filter((pod) => !isFinished(pod));
    const used = new Set(pods.map(({ spec }) => (spec as Answer)['nodeName']));
    const nodes = this.#kubernetes.list('v1', 'nodes');
    for (const name of this.#emptySince.keys())
      if (used.has(name) || !nodes.some(({ metadata }) => metadata.name === name))
        this.#emptySince.delete(name);
    for (const node of nodes) {
      const { name } = node.metadata;
      const group = groups.find(({ instances }) => instances.includes(providerIdOf(node)));
      if (used.has(name) || group === undefined) continue;
      const since = this.#emptySince.get(name) ?? now;
      this.#emptySince.set(name, since);
      if (now - since < EMPTY_MS || isCordoned(node)) continue;
      this.#kubernetes.change('v1', 'nodes', { metadata: { name }, spec: { unschedulable: true } });
      this.#log(`Cluster Autoscaler: NodeGroupDeleteNodes ${group.id} ${name}`);
      const removed = [{ name, providerID: providerIdOf(node) }];
      await this.#call('NodeGroupDeleteNodes', { id: group.id, nodes: removed });
    }
  }

  #call(rpc: string, request: object = {}): Promise<Answer> {
    const method = this.#methods[rpc];
    if (method === undefined) throw new Error(`the proto file has no rpc ${rpc}`);
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    this.#client.makeUnaryRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      request,
      { deadline: systemClock.now() + DEADLINE_MS },
      (error: ServiceError | null, answer?: object) =>
        error === null && answer !== undefined ? resolve(answer) : reject(error),
    );
    return promise;
  }
}

function providerIdOf({ spec }: KubeObject): string {
  return (spec as Answer | undefined)?.['providerID'] ?? '';
}

function isCordoned({ spec }: KubeObject): boolean {
  return (spec as Answer | undefined)?.['unschedulable'] === true;
}

function isFinished({ status }: KubeObject): boolean {
  return ['Succeeded', 'Failed'].includes((status as Answer | undefined)?.['phase']);
}

/** The scheduler has tried the pod and found no node. */
function isUnschedulable({ metadata, spec, status }: KubeObject): boolean {
  const conditions: readonly Answer[] = (status as Answer | undefined)?.['conditions'] ?? [];
  return (
    metadata.deletionTimestamp === undefined &&
    (spec as Answer)['nodeName'] === undefined &&
    conditions.some(({ reason }) => reason === 'Unschedulable')
  );
}

function requestsOf({ spec }: KubeObject): Amounts {
  const containers: readonly Answer[] = (spec as Answer)['containers'];
  const each = containers.map(({ resources }) => parseAmounts(resources?.requests ?? {}));
  return each.reduce(
    (sum, one) => subtract(sum, { cpuMilli: -one.cpuMilli, memoryBytes: -one.memoryBytes }),
    { cpuMilli: 0, memoryBytes: 0 },
  );
}

function parseAmounts(resources: Readonly<Record<string, string>>): Amounts {
  const [cpu, memory] = ['cpu', 'memory'].map((name) => parseQuantity(resources[name] ?? '0'));
  return {
    cpuMilli: cpu?.ok === true ? Number(milliValue(cpu.value)) : 0,
    memoryBytes: memory?.ok === true ? Number(wholeValue(memory.value)) : 0,
  };
}

function subtract(from: Amounts, what: Amounts): Amounts {
  return {
    cpuMilli: from.cpuMilli - what.cpuMilli,
    memoryBytes: from.memoryBytes - what.memoryBytes,
  };
}

/** Puts the pod on the first node where it fits; false when it fits nowhere. */
function place(nodes: Amounts[], pod: Amounts): boolean {
  const at = nodes.findIndex(
    ({ cpuMilli, memoryBytes }) => cpuMilli >= pod.cpuMilli && memoryBytes >= pod.memoryBytes,
  );
  const node = nodes[at];
  if (node === undefined) return false;
  nodes[at] = subtract(node, pod);
  return true;
}
