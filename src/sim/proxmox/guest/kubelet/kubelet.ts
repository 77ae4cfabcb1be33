// SPDX-License-Identifier: Apache-2.0
// One node, as its API server sees it: registers, reports, renews, runs pods. The container runtime is made up; the
// rest is what a kubelet says over the wire. kubelet-service.ts starts and stops it.
import { isRecord, listOf, recordOf, textOf } from '../plain-values.ts';
import type { NodeContext } from './node-context.ts';
import { NodeLease } from './node-lease.ts';
import { nodeObject, nodeStatus } from './node-object.ts';
import { Pods } from './pods.ts';
import { CallFailed } from './server-api.ts';
import { statusIntervals } from './settings.ts';

/** From the kubelet's start to a working pod network. */
const NETWORK_MS = 3_000;
const RETRY_MS = 1_000;

export class Kubelet {
  readonly #node: NodeContext;
  #isReady = false;
  #readySince: number;
  #reportedAt = Number.NEGATIVE_INFINITY;

  constructor(node: NodeContext) {
    this.#node = node;
    this.#readySince = node.clock.now();
  }

  /** Until the node's signal aborts; never rejects. */
  async run(): Promise<void> {
    const node = this.#node;
    while (!(await node.tryOnce('registration', () => this.#register()))) {
      if (node.signal.aborted) return;
      await node.sleep(RETRY_MS);
    }
    const lease = new NodeLease(node, () => this.#uid());
    await Promise.all([lease.run(), this.#status(), new Pods(node).run()]);
  }

  get #path(): string {
    return `/api/v1/nodes/${this.#node.settings.nodeName}`;
  }

  async #register(): Promise<void> {
    const { api, settings, facts } = this.#node;
    const node = { ...nodeObject(settings, facts), status: this.#statusNow() };
    try {
      await api.json('POST', '/api/v1/nodes', node);
    } catch (error) {
      // It was here before: what others have set on it since stays.
      if (!(error instanceof CallFailed && error.status === 409)) throw error;
    }
  }

  async #uid(): Promise<string> {
    const node = recordOf(await this.#node.api.json('GET', this.#path));
    return textOf(recordOf(node['metadata'])['uid']) ?? '';
  }

  async #status(): Promise<void> {
    const node = this.#node;
    const { lookMs } = statusIntervals(node.settings);
    await node.sleep(NETWORK_MS / node.speed);
    this.#isReady = true;
    this.#readySince = node.clock.now();
    while (!node.signal.aborted) {
      const isTold = await node.tryOnce('status', () => this.#tell());
      await node.sleep(isTold ? lookMs : RETRY_MS);
    }
  }

  /** Only what changed is written, and now and then that nothing did. */
  async #tell(): Promise<void> {
    const { api, clock, settings } = this.#node;
    const { reportMs } = statusIntervals(settings);
    const seen = recordOf(recordOf(await api.json('GET', this.#path))['status']);
    const ready = listOf(seen['conditions'])
      .filter(isRecord)
      .find(({ type }) => type === 'Ready');
    const isCurrent = ready?.['status'] === 'True';
    if (isCurrent && clock.monotonic() - this.#reportedAt < reportMs) return;
    // Somebody gave this node up meanwhile: it is ready again from now on.
    if (!isCurrent && this.#reportedAt > 0) this.#readySince = clock.now();
    await api.json('PATCH', `${this.#path}/status`, { status: this.#statusNow() });
    this.#reportedAt = clock.monotonic();
  }

  #statusNow() {
    const { settings, facts, clock } = this.#node;
    const moment = { isReady: this.#isReady, readySince: this.#readySince, now: clock.now() };
    return nodeStatus(settings, facts, moment);
  }
}
