// SPDX-License-Identifier: Apache-2.0
// The Kubernetes store on the simulated API server, in this process and on virtual time.
import { onTestFinished } from 'vitest';
import { KubernetesStore, RESOURCE_DEFINITIONS } from '../../src/kubernetes/index.ts';
import type { Clock } from '../../src/ports/clock.ts';
import { type PvescalerError, Unreachable } from '../../src/ports/errors.ts';
import { MemoryStore } from '../../src/ports/fakes/memory-store.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import type { Transport, TransportRequest } from '../../src/ports/transport.ts';
import { KubernetesSim } from '../../src/sim/kubernetes/index.ts';
import { SimTransport } from './sim-transport.ts';

type StoreOptions = Partial<ConstructorParameters<typeof KubernetesStore>[0]>;

export class StoreBench {
  readonly clock: Clock;
  readonly sim: KubernetesSim;
  readonly errors: PvescalerError[] = [];
  readonly #local: MemoryStore;
  readonly #stores: KubernetesStore[] = [];

  constructor(clock: Clock) {
    this.clock = clock;
    this.sim = new KubernetesSim({ clock, random: new SeededRandom(3) });
    this.sim.install(RESOURCE_DEFINITIONS);
    this.sim.create('v1', 'namespaces', { metadata: { name: 'pvescaler' } });
    this.#local = new MemoryStore({ clock });
  }

  /** Opens the store as another process; `wrap` changes its requests. */
  async open(
    options: StoreOptions = {},
    wrap: (transport: Transport) => Transport = (transport) => transport,
  ): Promise<KubernetesStore> {
    const store = new KubernetesStore({
      transport: wrap(new SimTransport(this.sim)),
      server: 'http://sim.example',
      namespace: 'pvescaler',
      local: this.#local.reopen(),
      clock: this.clock,
      random: new SeededRandom(4),
      onBackgroundError: (error) => this.errors.push(error),
      ...options,
    });
    this.#stores.push(store);
    await store.open();
    return store;
  }

  async cleanup(): Promise<void> {
    await Promise.all(this.#stores.map((store) => store.close()));
  }
}

/** A bench of its own for one test, and the writes to its objects. */
export function setUpBench() {
  const clock = new VirtualClock();
  const bench = new StoreBench(clock);
  onTestFinished(() => bench.cleanup());
  return { clock, bench, sim: bench.sim, writes: () => bench.sim.requests.filter(isObjectWrite) };
}

export function isObjectWrite(line: string): boolean {
  return /^(POST|PUT|PATCH|DELETE) .*pvescaler\.dev/.test(line);
}

/** The process never learns of changes by a watch. */
export function withoutWatches(transport: Transport): Transport {
  return {
    request: (request: TransportRequest) =>
      request.url.includes('watch=1')
        ? Promise.reject(new Unreachable('KUBERNETES_UNREACHABLE', 'no watch'))
        : transport.request(request),
    close: () => transport.close(),
  };
}
