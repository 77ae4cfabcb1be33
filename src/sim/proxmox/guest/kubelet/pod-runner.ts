// SPDX-License-Identifier: Apache-2.0
// Runs the pods bound to one node: starts them, reports them ready, terminates them within their grace period and
// deletes them. Pods are tracked by uid, so that a pod in both list and watch starts once. A status that another writer
// changed is reported again, as a kubelet does.
import { asList, asRecord, asText, isRecord } from '../untyped-values.ts';
import type { NodeContext } from './node-context.ts';
import { buildPodStatus, type PodFacts, type PodStatusInput, readPodFacts } from './pod-status.ts';
import { ApiCallError } from './server-api.ts';

/** Simulated durations: pull and start a small image; stop a process. */
const POD_START_MS = 1_500;
const POD_STOP_MS = 800;
const RETRY_MS = 1_000;
const WATCH_TIMEOUT_SECONDS = 300;

interface RunningPod {
  facts: PodFacts;
  readonly startedAt: number;
  readonly podIp: string;
  isStarted: boolean;
  isReady: boolean;
  isTerminating: boolean;
  /** Aborted when the pod is removed. */
  readonly stop: AbortController;
}

export class PodRunner {
  readonly #node: NodeContext;
  readonly #running = new Map<string, RunningPod>();
  #nextAddress = 1;

  constructor(node: NodeContext) {
    this.#node = node;
  }

  /** Runs until the node's signal aborts. */
  async run(): Promise<void> {
    while (!this.#node.signal.aborted) {
      await this.#node.tryAndReport('pods', () => this.#listAndWatch());
      await this.#node.sleep(RETRY_MS);
    }
    for (const { stop } of this.#running.values()) stop.abort();
  }

  async #listAndWatch(): Promise<void> {
    const { api, settings } = this.#node;
    const selector = `fieldSelector=${encodeURIComponent(`spec.nodeName=${settings.nodeName}`)}`;
    const list = asRecord(await api.requestJson('GET', `/api/v1/pods?${selector}`));
    this.#syncList(asList(list['items']).filter(isRecord).map(readPodFacts));
    const version = asText(asRecord(list['metadata'])['resourceVersion']) ?? '';
    const query = `${selector}&watch=true&allowWatchBookmarks=true&timeoutSeconds=${WATCH_TIMEOUT_SECONDS}`;
    for await (const event of api.watch(`/api/v1/pods?${query}&resourceVersion=${version}`)) {
      const { type, object } = asRecord(event);
      // The resource version is too old, or the server failed: list again.
      if (type === 'ERROR') return;
      if (type === 'BOOKMARK') continue;
      const pod = readPodFacts(asRecord(object));
      if (type === 'DELETED') this.#removePod(pod.uid);
      else this.#syncPod(pod);
    }
  }

  #syncList(pods: readonly PodFacts[]): void {
    const listed = new Set(pods.map(({ uid }) => uid));
    for (const uid of this.#running.keys()) if (!listed.has(uid)) this.#removePod(uid);
    for (const pod of pods) this.#syncPod(pod);
  }

  #removePod(uid: string): void {
    this.#running.get(uid)?.stop.abort();
    this.#running.delete(uid);
  }

  #syncPod(facts: PodFacts): void {
    const known = this.#running.get(facts.uid);
    if (known !== undefined) {
      known.facts = facts;
      if (facts.isTerminating && !known.isTerminating)
        this.#runInBackground(known, () => this.#terminatePod(known));
      else if (known.isReady && !facts.isReady && !known.isTerminating)
        this.#runInBackground(known, () => this.#reportStatus(known, 'ready'));
      return;
    }
    const { clock, vmId } = this.#node;
    const pod: RunningPod = {
      facts,
      startedAt: clock.now(),
      podIp: `10.244.${vmId % 256}.${(this.#nextAddress++ % 253) + 2}`,
      isStarted: false,
      isReady: false,
      isTerminating: facts.isTerminating,
      stop: new AbortController(),
    };
    this.#running.set(facts.uid, pod);
    if (facts.isTerminating) this.#runInBackground(pod, () => this.#terminatePod(pod));
    else if (!facts.isTerminated) this.#runInBackground(pod, () => this.#startPod(pod));
  }

  /** The work ends with the pod or with the node. */
  #runInBackground(pod: RunningPod, work: () => Promise<void>): void {
    void this.#node.runInBackground(work, pod.stop.signal);
  }

  async #startPod(pod: RunningPod): Promise<void> {
    await this.#sleepSimulated(pod, POD_START_MS);
    pod.isStarted = true;
    await this.#reportStatus(pod, 'running');
    await this.#sleepSimulated(pod, pod.facts.readyAfterSeconds * 1_000);
    if (pod.isTerminating) return;
    await this.#reportStatus(pod, 'ready');
    pod.isReady = true;
    const { runSeconds } = pod.facts;
    if (runSeconds === undefined) return;
    await this.#sleepSimulated(pod, runSeconds * 1_000);
    if (pod.isTerminating) return;
    pod.isReady = false;
    await this.#reportStatus(pod, 'terminated');
  }

  async #terminatePod(pod: RunningPod): Promise<void> {
    pod.isTerminating = true;
    const { graceSeconds, stopAfterSeconds } = pod.facts;
    const stopMs = pod.isStarted ? POD_STOP_MS + stopAfterSeconds * 1_000 : 0;
    await this.#sleepSimulated(pod, Math.min(stopMs, graceSeconds * 1_000));
    await this.#reportStatus(pod, 'terminated');
    await this.#retryUntilDone(pod, () =>
      this.#node.api.requestJson('DELETE', podPath(pod.facts), {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        gracePeriodSeconds: 0,
        preconditions: { uid: pod.facts.uid },
      }),
    );
  }

  #reportStatus(pod: RunningPod, state: PodStatusInput['state']): Promise<void> {
    const { api, clock, facts } = this.#node;
    const { startedAt, podIp } = pod;
    const input = { state, startedAt, podIp, hostIp: facts.address, now: clock.now() };
    return this.#retryUntilDone(pod, () =>
      api.requestJson('PATCH', `${podPath(pod.facts)}/status`, {
        metadata: { uid: pod.facts.uid },
        status: buildPodStatus(pod.facts, input),
      }),
    );
  }

  /** Retries until the call succeeds or the pod no longer exists. */
  async #retryUntilDone(pod: RunningPod, call: () => Promise<unknown>): Promise<void> {
    for (;;) {
      try {
        await call();
        return;
      } catch (error) {
        if (error instanceof ApiCallError && (error.status === 404 || error.status === 409)) return;
        this.#node.reportFailure(`pod ${pod.facts.name}`, error);
        await this.#node.clock.sleep(RETRY_MS, { signal: pod.stop.signal });
      }
    }
  }

  async #sleepSimulated(pod: RunningPod, realMs: number): Promise<void> {
    const { clock, speed } = this.#node;
    await clock.sleep(realMs / speed, { signal: pod.stop.signal });
  }
}

function podPath({ namespace, name }: PodFacts): string {
  return `/api/v1/namespaces/${namespace}/pods/${name}`;
}
