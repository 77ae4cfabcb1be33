// SPDX-License-Identifier: Apache-2.0
// A simulated kubelet: registers its Node, reports status, renews its lease and runs pods. It makes the API calls of a
// real kubelet without a container runtime. kubelet-service.ts starts and stops it.
import { asList, asRecord, asText, isRecord } from '../untyped-values.ts';
import type { NodeContext } from './node-context.ts';
import { NodeLease } from './node-lease.ts';
import { buildNode, buildNodeStatus } from './node-object.ts';
import { PodRunner } from './pod-runner.ts';
import { ApiCallError } from './server-api.ts';
import { statusIntervals } from './settings.ts';

/** Time from the kubelet's start until the pod network is ready. */
const POD_NETWORK_START_MS = 3_000;
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

  /** Runs until the node's signal aborts; never rejects. */
  async run(): Promise<void> {
    const node = this.#node;
    while (!(await node.tryAndReport('registration', () => this.#register()))) {
      if (node.signal.aborted) return;
      await node.sleep(RETRY_MS);
    }
    const lease = new NodeLease(node, () => this.#readNodeUid());
    await Promise.all([lease.run(), this.#runStatusLoop(), new PodRunner(node).run()]);
  }

  get #nodePath(): string {
    return `/api/v1/nodes/${this.#node.settings.nodeName}`;
  }

  async #register(): Promise<void> {
    const { api, settings, facts } = this.#node;
    const node = { ...buildNode(settings, facts), status: this.#buildStatus() };
    try {
      await api.requestJson('POST', '/api/v1/nodes', node);
    } catch (error) {
      // The Node exists from an earlier boot: keep what other clients set on it.
      if (!(error instanceof ApiCallError && error.status === 409)) throw error;
    }
  }

  async #readNodeUid(): Promise<string> {
    const node = asRecord(await this.#node.api.requestJson('GET', this.#nodePath));
    return asText(asRecord(node['metadata'])['uid']) ?? '';
  }

  async #runStatusLoop(): Promise<void> {
    const node = this.#node;
    const { checkMs } = statusIntervals(node.settings);
    await node.sleep(POD_NETWORK_START_MS / node.speed);
    this.#isReady = true;
    this.#readySince = node.clock.now();
    while (!node.signal.aborted) {
      const isReported = await node.tryAndReport('status', () => this.#reportStatusIfDue());
      await node.sleep(isReported ? checkMs : RETRY_MS);
    }
  }

  /** Writes the status when the API server does not show Ready, or when the report interval has passed. */
  async #reportStatusIfDue(): Promise<void> {
    const { api, clock, settings } = this.#node;
    const { reportMs } = statusIntervals(settings);
    const status = asRecord(asRecord(await api.requestJson('GET', this.#nodePath))['status']);
    const ready = asList(status['conditions'])
      .filter(isRecord)
      .find(({ type }) => type === 'Ready');
    const isCurrent = ready?.['status'] === 'True';
    if (isCurrent && clock.monotonic() - this.#reportedAt < reportMs) return;
    // The node controller set Ready to Unknown in the meantime: the node is ready again from now on.
    if (!isCurrent && this.#reportedAt > 0) this.#readySince = clock.now();
    await api.requestJson('PATCH', `${this.#nodePath}/status`, { status: this.#buildStatus() });
    this.#reportedAt = clock.monotonic();
  }

  #buildStatus() {
    const { settings, facts, clock } = this.#node;
    const input = { isReady: this.#isReady, readySince: this.#readySince, now: clock.now() };
    return buildNodeStatus(settings, facts, input);
  }
}
