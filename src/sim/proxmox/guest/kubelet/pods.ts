// SPDX-License-Identifier: Apache-2.0
// The pods bound to one node: started, ready, ended in their grace, removed. Follows the API server's list of them; what
// it runs is known by uid, so that a pod seen twice is started once.
import { isRecord, listOf, recordOf, textOf } from '../plain-values.ts';
import type { NodeContext } from './node-context.ts';
import { type PodFacts, type PodMoment, podFacts, podStatus } from './pod-status.ts';
import { CallFailed } from './server-api.ts';

/** How long a runtime takes to pull and start a small image, and a process to end when asked. */
const START_MS = 1_500;
const STOP_MS = 800;
const RETRY_MS = 1_000;
const WATCH_SECONDS = 300;

interface RunningPod {
  facts: PodFacts;
  readonly startedAt: number;
  readonly podIp: string;
  isStarted: boolean;
  isEnding: boolean;
  /** Ends the work for it: it is gone, or about to be. */
  readonly stop: AbortController;
}

export class Pods {
  readonly #node: NodeContext;
  readonly #running = new Map<string, RunningPod>();
  #addresses = 1;

  constructor(node: NodeContext) {
    this.#node = node;
  }

  /** Until the signal aborts. */
  async run(): Promise<void> {
    while (!this.#node.signal.aborted) {
      await this.#node.tryOnce('pods', () => this.#follow());
      await this.#node.sleep(RETRY_MS);
    }
  }

  async #follow(): Promise<void> {
    const { api, settings } = this.#node;
    const mine = `fieldSelector=${encodeURIComponent(`spec.nodeName=${settings.nodeName}`)}`;
    const list = recordOf(await api.json('GET', `/api/v1/pods?${mine}`));
    this.#take(listOf(list['items']).filter(isRecord).map(podFacts));
    const version = textOf(recordOf(list['metadata'])['resourceVersion']) ?? '';
    const query = `${mine}&watch=true&allowWatchBookmarks=true&timeoutSeconds=${WATCH_SECONDS}`;
    for await (const event of api.watch(`/api/v1/pods?${query}&resourceVersion=${version}`)) {
      const { type, object } = recordOf(event);
      // Too old, or worse: list again.
      if (type === 'ERROR') return;
      if (type === 'BOOKMARK') continue;
      const pod = podFacts(recordOf(object));
      if (type === 'DELETED') this.#forget(pod.uid);
      else this.#see(pod);
    }
  }

  #take(pods: readonly PodFacts[]): void {
    const there = new Set(pods.map(({ uid }) => uid));
    for (const uid of this.#running.keys()) if (!there.has(uid)) this.#forget(uid);
    for (const pod of pods) this.#see(pod);
  }

  #forget(uid: string): void {
    this.#running.get(uid)?.stop.abort();
    this.#running.delete(uid);
  }

  #see(facts: PodFacts): void {
    const known = this.#running.get(facts.uid);
    if (known !== undefined) {
      known.facts = facts;
      if (facts.isTerminating && !known.isEnding) this.#later(known, () => this.#end(known));
      return;
    }
    const { clock, vmId } = this.#node;
    const pod: RunningPod = {
      facts,
      startedAt: clock.now(),
      podIp: `10.244.${vmId % 256}.${(this.#addresses++ % 253) + 2}`,
      isStarted: false,
      isEnding: facts.isTerminating,
      stop: new AbortController(),
    };
    this.#running.set(facts.uid, pod);
    if (facts.isTerminating) this.#later(pod, () => this.#end(pod));
    else if (!facts.isOver) this.#later(pod, () => this.#start(pod));
  }

  /** Its own work, which ends with the pod or with the node. */
  #later(pod: RunningPod, work: () => Promise<void>): void {
    void this.#node.background(work, pod.stop.signal);
  }

  async #start(pod: RunningPod): Promise<void> {
    await this.#wait(pod, START_MS);
    pod.isStarted = true;
    await this.#report(pod, 'running');
    await this.#wait(pod, pod.facts.readyAfterSeconds * 1_000);
    if (!pod.isEnding) await this.#report(pod, 'ready');
  }

  async #end(pod: RunningPod): Promise<void> {
    pod.isEnding = true;
    const { graceSeconds, stopAfterSeconds } = pod.facts;
    const takes = pod.isStarted ? STOP_MS + stopAfterSeconds * 1_000 : 0;
    await this.#wait(pod, Math.min(takes, graceSeconds * 1_000));
    await this.#report(pod, 'ended');
    await this.#call(pod, () =>
      this.#node.api.json('DELETE', pathOf(pod.facts), {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        gracePeriodSeconds: 0,
        preconditions: { uid: pod.facts.uid },
      }),
    );
  }

  #report(pod: RunningPod, state: PodMoment['state']): Promise<void> {
    const { api, clock, facts } = this.#node;
    const { startedAt, podIp } = pod;
    const moment = { state, startedAt, podIp, hostIp: facts.address, now: clock.now() };
    return this.#call(pod, () =>
      api.json('PATCH', `${pathOf(pod.facts)}/status`, {
        metadata: { uid: pod.facts.uid },
        status: podStatus(pod.facts, moment),
      }),
    );
  }

  /** Until it is done or there is nothing to do it to. */
  async #call(pod: RunningPod, call: () => Promise<unknown>): Promise<void> {
    for (;;) {
      try {
        await call();
        return;
      } catch (error) {
        if (error instanceof CallFailed && (error.status === 404 || error.status === 409)) return;
        this.#node.trouble(`pod ${pod.facts.name}`, error);
        await this.#node.clock.sleep(RETRY_MS, { signal: pod.stop.signal });
      }
    }
  }

  async #wait(pod: RunningPod, realMs: number): Promise<void> {
    const { clock, speed } = this.#node;
    await clock.sleep(realMs / speed, { signal: pod.stop.signal });
  }
}

function pathOf({ namespace, name }: PodFacts): string {
  return `/api/v1/namespaces/${namespace}/pods/${name}`;
}
