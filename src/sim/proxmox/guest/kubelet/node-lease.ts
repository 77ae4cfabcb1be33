// SPDX-License-Identifier: Apache-2.0
// The node heartbeat: a Lease in kube-node-lease, renewed while the guest runs.
import { asRecord, type PlainRecord } from '../untyped-values.ts';
import type { NodeContext } from './node-context.ts';
import { ApiCallError } from './server-api.ts';

const LEASES_PATH = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const LEASE_DURATION_SECONDS = 40;
/** A quarter of the lease duration, in real time: the node controller does not know the guest's speed. */
const RENEW_INTERVAL_MS = 10_000;

export class NodeLease {
  readonly #node: NodeContext;
  readonly #nodeUid: () => Promise<string>;
  #last: PlainRecord | undefined;

  constructor(node: NodeContext, nodeUid: () => Promise<string>) {
    this.#node = node;
    this.#nodeUid = nodeUid;
  }

  async run(): Promise<void> {
    while (!this.#node.signal.aborted) {
      const isRenewed = await this.#node.tryAndReport('lease', () => this.#renewOrCreate());
      await this.#node.sleep(isRenewed ? RENEW_INTERVAL_MS : RENEW_INTERVAL_MS / 5);
    }
  }

  async #renewOrCreate(): Promise<void> {
    const { api, settings } = this.#node;
    const path = `${LEASES_PATH}/${settings.nodeName}`;
    try {
      const before = this.#last ?? asRecord(await api.requestJson('GET', path));
      const spec = { ...asRecord(before['spec']), ...this.#buildSpec() };
      this.#last = asRecord(await api.requestJson('PUT', path, { ...before, spec }));
    } catch (error) {
      this.#last = undefined;
      if (!(error instanceof ApiCallError && error.status === 404)) throw error;
      await this.#create();
    }
  }

  /** The Node owns the lease, so the lease is deleted with it. Without a Node the creation fails. */
  async #create(): Promise<void> {
    const { api, settings } = this.#node;
    const uid = await this.#nodeUid();
    const name = settings.nodeName;
    const lease = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name, ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid }] },
      spec: this.#buildSpec(),
    };
    this.#last = asRecord(await api.requestJson('POST', LEASES_PATH, lease));
  }

  #buildSpec() {
    return {
      holderIdentity: this.#node.settings.nodeName,
      leaseDurationSeconds: LEASE_DURATION_SECONDS,
      renewTime: new Date(this.#node.clock.now()).toISOString().replace('Z', '000Z'),
    };
  }
}
