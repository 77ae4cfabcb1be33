// SPDX-License-Identifier: Apache-2.0
// Says what was decided and why: in the journal, as Events of pods and Nodes, and as metrics. The same refusal is recorded
// once, until it changes.
import type { JournalEntry, JournalSubject } from '../model/journal-entry.ts';
import type { PoolPause } from '../model/pool.ts';
import type { Clock } from '../ports/clock.ts';
import type { Cluster, ClusterEvent } from '../ports/cluster.ts';
import type { Journal } from '../ports/journal.ts';
import type { Meters } from '../ports/meters.ts';
import type { CreateStep, Plan, PodName, Refusal, Step } from '../scaling/index.ts';

/** Events name the object by its uid: kubectl shows only those. */
export interface Uids {
  node(name: string): string | undefined;
  /** By `namespace/name`. */
  pod(key: string): string | undefined;
}

export interface RecorderOptions {
  readonly journal: Journal;
  readonly cluster: Cluster;
  readonly meters: Meters;
  readonly clock: Pick<Clock, 'now'>;
  /** Of Events that are not about a pod or a Node. */
  readonly namespace: string;
}

/** Of one decision. A rollout of a thousand pods that fit nowhere is explained by its first ones. */
const MAX_POD_ENTRIES = 20;
const MAX_POD_EVENTS = 50;

/** Refusals of these subjects; those of nodes and hosts change with every decision, and `explain` shows them. */
const RECORDED: readonly Refusal['subject']['kind'][] = ['pool', 'pod', 'cluster'];

export class PlanRecorder {
  readonly #options: RecorderOptions;
  /** The last text per subject. */
  #recorded = new Map<string, string>();

  constructor(options: RecorderOptions) {
    this.#options = options;
  }

  /** A step that was carried out. */
  async recordStep(step: Step, plan: Plan, uids: Uids): Promise<void> {
    const { snapshotDigest: digest } = plan;
    await this.#append({
      kind: 'did',
      subject: subjectOfStep(step),
      reason: STEP_REASONS[step.kind],
      message: step.reason,
      numbers: { ...numbersOf(step.facts), digest },
    });
    if (step.kind === 'create') this.#emitTriggered(step);
    if (step.kind === 'drain')
      this.#emit({
        regarding: { kind: 'Node', name: step.node, ...withUid(uids.node(step.node)) },
        type: 'Normal',
        reason: 'ScaleDown',
        message: step.reason,
      });
  }

  /** A step that was not carried out. */
  async recordFailedStep(step: Step, plan: Plan, message: string): Promise<void> {
    await this.#once(`step ${step.pool} ${step.kind}`, {
      kind: 'failed',
      subject: subjectOfStep(step),
      reason: `${STEP_REASONS[step.kind]}Failed`,
      message: `${step.reason}: ${message}`,
      numbers: { digest: plan.snapshotDigest },
    });
  }

  async recordRefusals({ refusals, snapshotDigest: digest }: Plan, uids: Uids): Promise<void> {
    const known = this.#recorded;
    const isPod = ({ subject }: Refusal) => subject.kind === 'pod';
    // Machines for the pods that wait for a batch are requested a second later.
    const shown = refusals.filter(
      ({ subject, code }) => RECORDED.includes(subject.kind) && code !== 'PodWaitsForBatch',
    );
    const pods = shown.filter(isPod);
    for (const refusal of [
      ...shown.filter((one) => !isPod(one)),
      ...pods.slice(0, MAX_POD_ENTRIES),
    ]) {
      const { code, reason, facts } = refusal;
      await this.#once(keyOf(refusal), {
        kind: 'refused',
        subject: subjectOfRefusal(refusal),
        reason: code,
        message: reason,
        numbers: { ...numbersOf(facts), digest },
      });
    }
    for (const refusal of pods.slice(0, MAX_POD_EVENTS))
      this.#emitNotTriggered(refusal, { known, uids });
    const current = new Set(shown.map(keyOf).flatMap((key) => [key, `event of ${key}`]));
    this.#recorded = new Map(
      [...this.#recorded].filter(([key]) => current.has(key) || !REFUSAL_KEY.test(key)),
    );
  }

  async recordStale(reason: string): Promise<void> {
    await this.#once('stale', {
      kind: 'saw',
      subject: {},
      reason: 'AutoscalerViewStale',
      message: `nothing is decided about pods: ${reason}`,
    });
  }

  /** The view is fresh again. */
  clearStale(): void {
    this.#recorded.delete('stale');
  }

  async recordPause(pool: string, { reason, until }: PoolPause): Promise<void> {
    const message = `pool ${pool} is paused until ${new Date(until).toISOString()}: ${reason}. pvescaler pool resume ${pool} ends the pause`;
    await this.#append({ kind: 'refused', subject: { pool }, reason: 'PoolPaused', message });
    const { namespace } = this.#options;
    this.#emit({
      regarding: { kind: 'Namespace', name: namespace },
      type: 'Warning',
      reason: 'PoolPaused',
      message,
    });
  }

  setGauges({ counts }: Plan): void {
    const { meters } = this.#options;
    const { fitExisting, fitProvisioning, fitNew, unplaced } = counts;
    const states = { fitExisting, fitProvisioning, fitNew, unplaced };
    meters.set(
      'pvescaler_autoscaler_pending_pods',
      Object.entries(states).map(([state, value]) => ({ labels: { state }, value })),
    );
    meters.set('pvescaler_autoscaler_unneeded_machines', [{ labels: {}, value: counts.unneeded }]);
  }

  #emitTriggered(step: CreateStep): void {
    const pods = step.machines.flatMap((machine) => machine.pods);
    for (const pod of pods.slice(0, MAX_POD_EVENTS))
      this.#emit({
        regarding: regardingPod(pod),
        type: 'Normal',
        reason: 'TriggeredScaleUp',
        message: `pod triggered scale-up: ${step.reason}`,
      });
  }

  /** The recorder of Events counts equal ones; here they are limited to one per change. */
  #emitNotTriggered(
    { subject, code, reason }: Refusal,
    { known, uids }: { readonly known: ReadonlyMap<string, string>; readonly uids: Uids },
  ): void {
    const key = `event of ${subject.kind} ${subject.name}`;
    const text = withoutDurations(reason);
    if (known.get(key) === text) return;
    this.#recorded.set(key, text);
    const [namespace = '', name = ''] = subject.name.split('/');
    this.#emit({
      regarding: { kind: 'Pod', namespace, name, ...withUid(uids.pod(subject.name)) },
      type: 'Normal',
      reason: 'NotTriggerScaleUp',
      message: `${code}: ${reason}`,
    });
  }

  async #once(key: string, entry: Omit<JournalEntry, 'at'>): Promise<void> {
    const text = withoutDurations(`${entry.reason} ${entry.message}`);
    if (this.#recorded.get(key) === text) return;
    this.#recorded.set(key, text);
    await this.#append(entry);
  }

  async #append(entry: Omit<JournalEntry, 'at'>): Promise<void> {
    const { journal, clock } = this.#options;
    await journal.append({ at: clock.now(), ...entry });
  }

  /** Not awaited: nothing depends on an Event. */
  #emit(event: ClusterEvent): void {
    this.#options.cluster.emit(event).catch(() => undefined);
  }
}

const STEP_REASONS: Readonly<Record<Step['kind'], string>> = {
  create: 'ScaleUp',
  drain: 'ScaleDown',
  cancel: 'ScaleUpCancelled',
};

const REFUSAL_KEY = /^(event of )?(pod|pool|cluster) /;

/** `is paused for 29m` is the same as a minute ago. */
function withoutDurations(text: string): string {
  return text.replaceAll(/ for \d+[dhms]\w*/g, '');
}

function keyOf({ subject }: Refusal): string {
  return `${subject.kind} ${subject.name}`;
}

function subjectOfStep(step: Step): JournalSubject {
  switch (step.kind) {
    case 'create':
      return {
        pool: step.pool,
        ...(step.host !== undefined && { host: step.host }),
        ...(step.region !== undefined && { region: step.region }),
      };
    case 'drain':
      return { pool: step.pool, machine: step.machine, node: step.node };
    case 'cancel':
      return { pool: step.pool, machine: step.machine };
  }
}

function subjectOfRefusal({ subject: { kind, name } }: Refusal): JournalSubject {
  if (kind === 'pod') return { pod: name };
  return kind === 'pool' ? { pool: name } : {};
}

function regardingPod({ namespace, name, uid }: PodName): ClusterEvent['regarding'] {
  return { kind: 'Pod', namespace, name, uid };
}

function withUid(uid: string | undefined): Pick<ClusterEvent['regarding'], 'uid'> {
  return uid === undefined ? {} : { uid };
}

function numbersOf(facts: Refusal['facts']): Readonly<Record<string, number | string>> {
  return Object.fromEntries(
    Object.entries(facts).map(([key, value]) => [
      key,
      typeof value === 'boolean' ? String(value) : value,
    ]),
  );
}
