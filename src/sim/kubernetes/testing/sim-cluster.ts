// SPDX-License-Identifier: Apache-2.0
// A simulated cluster on virtual time with nodes without machines, and workloads for it.
import { SeededRandom } from '../../../ports/fakes/seeded-random.ts';
import { VirtualClock } from '../../../ports/fakes/virtual-clock.ts';
import { FAKE_NODE_ANNOTATION } from '../controllers/fake-kubelet.ts';
import type { ControllerOptions } from '../controllers/index.ts';
import { KubernetesSim } from '../sim.ts';
import type { JsonObject, SimObject } from '../storage/objects.ts';
import { textField } from '../storage/objects.ts';

export interface SimCluster {
  readonly sim: KubernetesSim;
  readonly clock: VirtualClock;
  /** Advances the clock. */
  advance(seconds: number): Promise<void>;
  /** Sends a request; returns status and body. */
  call(method: string, path: string, body?: JsonObject, type?: string): Promise<ApiAnswer>;
  addNode(name: string, options?: NodeOptions): SimObject;
  pods(): readonly SimObject[];
  stop(): void;
}

export interface ApiAnswer {
  readonly status: number;
  readonly body: JsonObject;
}

export interface NodeOptions {
  readonly labels?: Readonly<Record<string, string>>;
  readonly taints?: readonly JsonObject[];
  readonly allocatable?: Readonly<Record<string, string>>;
}

const ALLOCATABLE = { cpu: '2', memory: '4Gi', pods: '110' };

export function startSimCluster(controllers: ControllerOptions = {}, seed = 1): SimCluster {
  const clock = new VirtualClock();
  const sim = new KubernetesSim({ clock, random: new SeededRandom(seed), controllers });
  const stop = new AbortController();
  void sim.run(stop.signal);
  return {
    sim,
    clock,
    advance: (seconds) => clock.advance(seconds * 1_000),
    // oxlint-disable-next-line max-params -- the parts of a request
    call: async (method, path, body, type = 'application/json') => {
      const response = await sim.fetch(
        new Request(`http://sim.example${path}`, {
          method,
          headers: { 'content-type': type },
          ...(body && { body: JSON.stringify(body) }),
        }),
      );
      const answer: unknown = await response.json();
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every answer is a JSON object
      return { status: response.status, body: answer as JsonObject };
    },
    addNode: (name, options = {}) => addNode(sim, name, options),
    pods: () => sim.list('v1', 'pods'),
    stop: () => stop.abort(),
  };
}

function addNode(sim: KubernetesSim, name: string, options: NodeOptions): SimObject {
  const { labels, taints = [], allocatable = ALLOCATABLE } = options;
  return sim.create('v1', 'nodes', {
    metadata: {
      name,
      labels: { 'kubernetes.io/hostname': name, ...labels },
      annotations: { [FAKE_NODE_ANNOTATION]: 'fake' },
    },
    spec: { taints },
    status: { capacity: allocatable, allocatable },
  });
}

/** A pod template with one container. */
export function aTemplate(
  app: string,
  spec: JsonObject = {},
  { cpu = '500m', annotations = {} }: { cpu?: string; annotations?: JsonObject } = {},
): JsonObject {
  return {
    metadata: { labels: { app }, annotations },
    spec: {
      containers: [{ name: 'main', image: 'x', resources: { requests: { cpu, memory: '64Mi' } } }],
      ...spec,
    },
  };
}

/** A workload of `apps/v1` whose pods have the label `app` with its name. */
export function aWorkload(name: string, spec: JsonObject = {}) {
  return {
    metadata: { name, namespace: 'default' },
    spec: { selector: { matchLabels: { app: name } }, template: aTemplate(name), ...spec },
  };
}

export function nodeNameOf({ spec }: SimObject): string {
  return typeof spec === 'object' && spec !== null && !Array.isArray(spec)
    ? textField(Object.fromEntries(Object.entries(spec)), 'nodeName')
    : '';
}
