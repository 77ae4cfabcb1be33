// SPDX-License-Identifier: Apache-2.0
// The node's heartbeat: a Lease in kube-node-lease, renewed while the machine runs.
import { type PlainRecord, recordOf } from '../plain-values.ts';
import type { NodeContext } from './node-context.ts';
import { CallFailed } from './server-api.ts';

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const DURATION_SECONDS = 40;
/** A quarter of the duration, on real time: those who judge it do not know how fast this machine boots. */
const RENEW_MS = 10_000;

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
      const isRenewed = await this.#node.tryOnce('lease', () => this.#renew());
      await this.#node.sleep(isRenewed ? RENEW_MS : RENEW_MS / 5);
    }
  }

  async #renew(): Promise<void> {
    const { api, settings } = this.#node;
    const path = `${LEASES}/${settings.nodeName}`;
    try {
      const before = this.#last ?? recordOf(await api.json('GET', path));
      const spec = { ...recordOf(before['spec']), ...this.#spec() };
      this.#last = recordOf(await api.json('PUT', path, { ...before, spec }));
    } catch (error) {
      this.#last = undefined;
      if (!(error instanceof CallFailed && error.status === 404)) throw error;
      await this.#create();
    }
  }

  /** Owned by the Node: it goes with it, and without a Node there is none. */
  async #create(): Promise<void> {
    const { api, settings } = this.#node;
    const uid = await this.#nodeUid();
    const name = settings.nodeName;
    const lease = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name, ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid }] },
      spec: this.#spec(),
    };
    this.#last = recordOf(await api.json('POST', LEASES, lease));
  }

  #spec() {
    return {
      holderIdentity: this.#node.settings.nodeName,
      leaseDurationSeconds: DURATION_SECONDS,
      renewTime: new Date(this.#node.clock.now()).toISOString().replace('Z', '000Z'),
    };
  }
}
