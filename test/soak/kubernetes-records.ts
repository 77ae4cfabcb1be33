// SPDX-License-Identifier: Apache-2.0
// The records of one installation as objects of a simulated API server. Each process opens its own store; faults make the
// API server unreachable or silent, break watches, and lose the answers of writes.
import {
  fromObject,
  KubernetesStore,
  RECORD_KINDS,
  RESOURCE_DEFINITIONS,
} from '../../src/kubernetes/index.ts';
import type { Lease } from '../../src/model/lease.ts';
import type { MemoryStore } from '../../src/ports/fakes/memory-store.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import type { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import type { Random } from '../../src/ports/random.ts';
import type { CollectionName, RecordKinds } from '../../src/ports/record-validators.ts';
import type { Store, StoreLeases } from '../../src/ports/store.ts';
import type { RequestFence } from '../../src/ports/write-fence.ts';
import { KubernetesSim } from '../../src/sim/kubernetes/index.ts';
import { SimTransport } from '../kubernetes/sim-transport.ts';
import {
  ApiConnection,
  type ApiMode,
  type ConnectionObserver,
  type RequestFault,
} from './api-connection.ts';
import { override } from './override.ts';

const NAMESPACE = 'pvescaler';
const API_VERSION = 'pvescaler.dev/v1alpha1';
const MAX_BACKUPS = 6;
const MINUTE_MS = 60_000;

interface OpenOptions {
  /** Has the leases and the journal of the installation. */
  readonly local: MemoryStore;
  readonly fence: RequestFence;
  readonly seed: number;
  readonly observer: ConnectionObserver;
  readonly onError: (error: unknown) => void;
}

type ApiFault = (records: KubernetesRecords, random: Random) => void;

const WRITES = ['POST', 'PUT', 'DELETE'] as const;

/** The next requests with one of these verbs. */
function nextRequests(fault: RequestFault, verbs: readonly string[] = WRITES): ApiFault {
  return (records, random) => {
    const method = verbs[random.integer(verbs.length)] ?? 'PUT';
    records.addFault({ method, fault, times: 1 + random.integer(3) });
  };
}

/** The next writes are refused with this status. */
function refuse(status: number): ApiFault {
  return ({ sim }, random) => {
    const verb = WRITES[random.integer(WRITES.length)] ?? 'PUT';
    const times = 1 + random.integer(3);
    sim.faults.add({ verb, path: 'pvescaler.dev', fault: { kind: 'status', status }, times });
  };
}

/** The API server is in this mode for ten seconds to ten minutes. */
function forAWhile(mode: ApiMode): ApiFault {
  return (records, random) => records.setMode(mode, 10_000 + random.integer(10 * MINUTE_MS));
}

export const API_FAULTS: Readonly<Record<string, ApiFault>> = {
  'records: API server unreachable': forAWhile('unreachable'),
  'records: API server hangs': forAWhile('hanging'),
  'records: requests refused as too many': refuse(429),
  'records: watches broken': ({ sim }) => sim.watches.disconnect(),
  'records: watches silent': ({ sim }) => sim.watches.stall(),
  'records: history compacted': ({ sim }) => {
    sim.compact();
    sim.watches.disconnect();
  },
  'records: write refused as a conflict': refuse(409),
  'records: write lost': nextRequests('lost'),
  'records: answer lost': nextRequests('answer-lost'),
  'records: no answer': nextRequests('no-answer'),
  'records: write late': nextRequests('late'),
  'records: list fails': nextRequests('lost', ['GET']),
};

interface NextFault {
  readonly method: string;
  readonly fault: RequestFault;
  readonly times: number;
}

export class KubernetesRecords {
  readonly sim: KubernetesSim;
  readonly #clock: VirtualClock;
  #mode: ApiMode = 'connected';
  #modeUntil = 0;
  #faults: readonly NextFault[] = [];
  /** How often all objects were replaced. */
  #replacements = 0;
  readonly #random: Random;
  #backups: readonly ReturnType<KubernetesSim['snapshot']>[] = [];

  constructor(clock: VirtualClock, seed: number) {
    this.#clock = clock;
    this.#random = new SeededRandom(seed + 8);
    this.sim = new KubernetesSim({ clock, random: new SeededRandom(seed + 7) });
    this.sim.install(RESOURCE_DEFINITIONS);
    this.sim.create('v1', 'namespaces', { metadata: { name: NAMESPACE } });
  }

  get mode(): ApiMode {
    return this.#clock.monotonic() < this.#modeUntil ? this.#mode : 'connected';
  }

  setMode(mode: ApiMode, forMs: number): void {
    this.#mode = mode;
    this.#modeUntil = this.#clock.monotonic() + forMs;
    if (mode !== 'connected') this.sim.watches.stall();
  }

  addFault(fault: NextFault): void {
    this.#faults = [...this.#faults, fault];
  }

  takeFault(method: string): RequestFault | undefined {
    const taken = this.#faults.find((one) => one.method === method);
    if (taken === undefined) return undefined;
    const { times } = taken;
    this.#faults = this.#faults.flatMap((one) => {
      if (one !== taken) return [one];
      return times > 1 ? [{ ...one, times: times - 1 }] : [];
    });
    return taken.fault;
  }

  /** Sends a request after up to two minutes, unless the objects have been replaced since. */
  sendLater(send: () => Promise<void>): void {
    const replacements = this.#replacements;
    const laterMs = 1_000 + this.#random.integer(2 * MINUTE_MS);
    void this.#clock
      .sleep(laterMs)
      .then(() => (this.#replacements === replacements ? send() : undefined));
  }

  clearFaults(): void {
    this.#modeUntil = 0;
    this.#faults = [];
    this.sim.faults.clear();
  }

  /** What is durable. */
  list<N extends CollectionName>(collection: N): readonly RecordKinds[N][] {
    return RECORD_KINDS.flatMap((kind) => {
      if (!kind.parts.some((part) => part.collection === collection)) return [];
      return this.sim.list(API_VERSION, kind.plural).flatMap((object) => {
        const parts = fromObject(kind, object);
        return parts.ok ? (parts.value[collection] ?? []) : [];
      });
    });
  }

  backUp(): void {
    this.#backups = [...this.#backups, this.sim.snapshot()].slice(-MAX_BACKUPS);
  }

  /** All objects are deleted. */
  lose(): void {
    this.#backups = [];
    this.#replacements += 1;
    for (const { plural } of RECORD_KINDS) {
      for (const { metadata } of this.sim.list(API_VERSION, plural))
        this.sim.remove(API_VERSION, plural, { name: metadata.name, namespace: NAMESPACE });
    }
  }

  /** False when there is no backup. */
  rollBack(pick: (count: number) => number): boolean {
    const backup = this.#backups[pick(this.#backups.length)];
    if (backup === undefined) return false;
    this.sim.restore(backup);
    this.#replacements += 1;
    return true;
  }

  open({ local, fence, seed, observer, onError }: OpenOptions): ProcessStore {
    const transport = new SimTransport(this.sim);
    const connection = new ApiConnection({ records: this, observer, transport });
    const journal = local.reopen({ onWrite: () => connection.countWrite() });
    const leases = observeOwnLeases(local.leases, () => connection.throwIfDead());
    return new ProcessStore(
      {
        transport: connection,
        server: 'http://records.example',
        namespace: NAMESPACE,
        local: override<Store>(journal, { leases }),
        clock: this.#clock,
        random: new SeededRandom(seed),
        fence,
        onBackgroundError: onError,
      },
      connection,
    );
  }
}

/** The store of one process on a machine of its own. */
export class ProcessStore extends KubernetesStore {
  readonly #connection: ApiConnection;

  constructor(
    options: ConstructorParameters<typeof KubernetesStore>[0],
    connection: ApiConnection,
  ) {
    super(options);
    this.#connection = connection;
  }

  crashAfterWrites(n: number): void {
    this.#connection.crashAfterWrites(n);
  }
}

/**
 * Leases that exclude each other, although each machine only knows its own, as with an election between machines: a
 * process does not see that another one has taken its lease.
 */
function observeOwnLeases(leases: StoreLeases, assertAlive: () => void): StoreLeases {
  let own: Lease | undefined;
  const keep = (lease: Lease): Lease => {
    own = lease;
    return lease;
  };
  return {
    acquire: async (...args) => {
      assertAlive();
      return keep(await leases.acquire(...args));
    },
    renew: async (...args) => {
      assertAlive();
      return keep(await leases.renew(...args));
    },
    read: (...args) => {
      assertAlive();
      return own === undefined ? leases.read(...args) : Promise.resolve(own);
    },
    release: async (lease) => {
      assertAlive();
      await leases.release(lease);
      if (own?.token === lease.token) own = { ...own, expiresAt: 0 };
    },
  };
}
