// SPDX-License-Identifier: Apache-2.0
// One seed: virtual hours of scaling requests, faults, crashes, stalls, clock jumps and external changes; then the pools
// settle without faults, and are scaled to zero.
import type { PassReport } from '../../src/fleet/index.ts';
import type { CrashPoint } from '../../src/fleet/testing/crashing-process.ts';
import type { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { runHungHost, runRestore } from './episodes.ts';
import {
  applyApiFault,
  applyClusterFault,
  applyExternalChange,
  cleanUpSite,
  deleteImages,
  jumpWallClock,
  repairSite,
} from './external-changes.ts';
import { PHASES, pick, pickFault } from './faults.ts';
import type { CrashKind, Installation, SoakProcess } from './installation.ts';
import { checkConverged } from './invariants.ts';
import type { Mutation } from './mutations.ts';
import { LEASE_MS, SoakEnvironment } from './soak-environment.ts';
import { BUSY_MS, type SeedFeatures } from './soak-settings.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 6 * HOUR_MS;
const IDLE_MS = 10 * MINUTE_MS;
const DRIVE_MS = 5 * MINUTE_MS;
const STALL_MS = 6 * MINUTE_MS;
const JUMP_EVERY_STEPS = 60;
export const OUTAGE = 'no process for a while';
export const FAILOVER = 'failover to another replica';

const EVENTS_PER_DAY = {
  scale: 40,
  fault: 24,
  crash: 5,
  stall: 2,
  'external-change': 8,
  'cluster-fault': 3,
  'api-fault': 16,
  failover: 6,
  'clock-jump': 2,
  'hung-host': 1,
  outage: 1,
  restore: 1,
  'clean-up': 16,
  settle: 1,
};
type EventKind = keyof typeof EVENTS_PER_DAY;

interface PlannedEvent {
  readonly at: number;
  readonly kind: EventKind;
}

const LAST_CRASHING_ATTEMPT = 2;
const FAULT_BURST_FACTOR = 4;
const DISRUPTIONS: readonly EventKind[] = [
  'fault',
  'api-fault',
  'crash',
  'stall',
  'external-change',
];
const OPTIONAL_EVENTS: Partial<Record<EventKind, keyof SeedFeatures>> = {
  'cluster-fault': 'kubernetes',
  'api-fault': 'recordsInKubernetes',
  failover: 'recordsInKubernetes',
  'clock-jump': 'clockJumps',
  'hung-host': 'hungHost',
};

function planDay(random: SeededRandom, features: SeedFeatures): readonly PlannedEvent[] {
  const kinds = Object.keys(EVENTS_PER_DAY) as EventKind[];
  const countOf = (kind: EventKind): number => {
    const feature = OPTIONAL_EVENTS[kind];
    if (feature !== undefined && !features[feature]) return 0;
    const isMultiplied = features.faultBurst && DISRUPTIONS.includes(kind);
    return EVENTS_PER_DAY[kind] * (isMultiplied ? FAULT_BURST_FACTOR : 1);
  };
  const events = kinds.flatMap((kind) => {
    const count = countOf(kind);
    return Array.from({ length: count }, (_, at) => ({
      kind,
      at: Math.floor(((at + random.fraction()) * DAY_MS) / count),
    }));
  });
  return events.toSorted((a, b) => a.at - b.at);
}

export interface SeedResult {
  readonly seed: number;
  readonly violations: readonly string[];
  readonly coverage: Readonly<Record<string, number>>;
  /** How often each feature was exercised. */
  readonly exercised: Readonly<Record<string, number>>;
  readonly counts: Readonly<Record<string, number>>;
  readonly hash: string;
}

export async function runSeed(seed: number, mutation: Mutation = {}): Promise<SeedResult> {
  // A seed creates thousands of errors; stack traces would only cost time.
  Error.stackTraceLimit = 0;
  const run = new SeedRun(new SoakEnvironment(seed, mutation));
  await run.run();
  const { violations, coverage, exercised, hash, faultCount, externalChangeCount } =
    run.environment;
  return {
    seed,
    violations,
    coverage: Object.fromEntries(coverage),
    exercised: Object.fromEntries(exercised),
    counts: {
      scalings: run.scalings,
      faults: faultCount,
      crashes: run.crashes,
      externalChanges: externalChangeCount,
      hours: run.hours,
    },
    hash,
  };
}

export class SeedRun {
  readonly environment: SoakEnvironment;
  scalings = 0;
  crashes = 0;

  constructor(environment: SoakEnvironment) {
    this.environment = environment;
  }

  get hours(): number {
    return Math.floor(this.environment.now / HOUR_MS);
  }

  get hasFailed(): boolean {
    return this.environment.violations.length > 0;
  }

  async run(): Promise<void> {
    const { environment } = this;
    this.#countPermanentFeatures();
    for (const event of planDay(environment.random, environment.features)) {
      await this.runUntil(event.at);
      if (this.hasFailed) return;
      await this.#apply(event.kind);
    }
    await this.runUntil(DAY_MS);
    await this.#settle((max) => environment.random.integer(max + 1));
    await this.#settle(() => 0);
    if (!this.hasFailed) this.#checkIntensity();
  }

  #countPermanentFeatures(): void {
    const { environment } = this;
    const { edge, kubernetes, recordsInKubernetes, secondInstallation, faultBurst } =
      environment.features;
    for (const [name, isThere] of Object.entries({
      'two regions': edge,
      Kubernetes: kubernetes,
      'records in Kubernetes': recordsInKubernetes,
      'two installations': secondInstallation,
      'fault burst': faultBurst,
    })) {
      if (isThere) environment.countFeature(name);
    }
    for (const { settings } of environment.installations) {
      for (const { source, network } of Object.values(settings.pools)) {
        const clone = source.kind === 'template' ? ` (${source.clone} clone)` : '';
        environment.countFeature(`pool from ${source.kind}${clone}`);
        environment.countFeature(`pool with ${network.v4.kind} addresses`);
      }
    }
  }

  /** A seed with too few events proves nothing. */
  #checkIntensity(): void {
    const { faultCount, externalChangeCount } = this.environment;
    const isFull =
      this.scalings >= 40 && faultCount >= 2 && this.crashes >= 2 && externalChangeCount > 0;
    if (isFull && this.hours >= 6) return;
    this.environment.reportViolation(
      `the seed has too few events: ${this.scalings} scalings, ${faultCount} faults, ${this.crashes} crashes`,
    );
  }

  async runUntil(at: number): Promise<void> {
    const { environment } = this;
    while (environment.now < at && !this.hasFailed) {
      const isBusy = await this.runPasses();
      const pauseMs = Math.min(isBusy ? BUSY_MS : IDLE_MS, Math.max(0, at - environment.now));
      await environment.clock.advance(pauseMs);
    }
  }

  /** Returns whether work is in progress. */
  async runPasses(): Promise<boolean> {
    let isBusy = false;
    for (const [installation, outcome] of await this.environment.runPasses()) {
      if (outcome === 'crashed') await this.#handleCrash(installation);
      isBusy ||= isInProgress(outcome);
    }
    return isBusy;
  }

  async #handleCrash(installation: Installation): Promise<void> {
    const { environment } = this;
    const { random } = environment;
    const machines = await installation.machines();
    const kind = await this.#replaceDatabase(installation);
    this.crashes += 1;
    for (const { phase } of machines) {
      if (PHASES.some((one) => one === phase)) environment.countFault(kind, phase);
    }
    environment.log(`${installation.name}: ${kind}`);
    // In one of three cases the recovery crashes too.
    if (random.integer(3) === 0) this.#startCrashingProcess(installation);
    else this.startProcess(installation);
  }

  /** Returns what happened to the database at the crash. */
  async #replaceDatabase(installation: Installation): Promise<CrashKind> {
    const { nextCrash = 'crash' } = installation;
    const { random } = this.environment;
    if (nextCrash === 'database-lost') installation.loseDatabase();
    else if (
      nextCrash === 'crash' ||
      !(await installation.rollBack((count) => random.integer(count)))
    )
      return 'crash';
    // Other processes of the installation are stopped while its database is replaced.
    this.environment.killProcesses(installation);
    return nextCrash;
  }

  startProcess(installation: Installation): void {
    installation.nextCrash = undefined;
    this.#replaceProcess(installation, this.environment.startProcess(installation));
  }

  async #apply(kind: EventKind): Promise<void> {
    const { environment } = this;
    const installation = pick(environment.random, environment.installations);
    const handlers: Record<EventKind, () => Promise<void> | void> = {
      scale: () => this.#scale(),
      fault: () => this.#injectFault(),
      crash: () => this.#scheduleCrash(installation),
      stall: () => this.#stallProcess(installation),
      'external-change': () => applyExternalChange(environment),
      'cluster-fault': () => applyClusterFault(environment),
      'api-fault': () => applyApiFault(environment),
      failover: () => this.#failOver(installation),
      'clock-jump': () => jumpWallClock(environment),
      'hung-host': () => runHungHost(this),
      outage: () => this.#beginOutage(installation),
      restore: () => runRestore(this),
      'clean-up': () => cleanUpSite(environment),
      settle: () => this.#settle((max) => environment.random.integer(max + 1)),
    };
    await handlers[kind]();
  }

  async #scale(): Promise<void> {
    const { random, installations } = this.environment;
    const installation = pick(random, installations);
    const pool = pick(random, installation.pools);
    await this.scaleTo(installation, pool, random.integer(installation.maxSizeOf(pool) + 1));
    if (random.integer(3) === 0) installation.backUp();
  }

  async scaleTo(installation: Installation, pool: string, size: number): Promise<void> {
    this.scalings += 1;
    await this.environment.scaleTo(installation, pool, size);
  }

  #injectFault(): void {
    const { environment } = this;
    const { random } = environment;
    const { row, column, rules } = pickFault(random);
    if (column === 'placed') deleteImages(environment);
    const { sim } = pick(random, [...environment.regions.values()]);
    for (const rule of rules) {
      environment.faultNames.set(rule, row);
      sim.faults.add(rule);
    }
  }

  /** Lets the process crash soon. A process that was to crash and has not crashed yet is replaced now. */
  async #scheduleCrash(installation: Installation): Promise<void> {
    if (installation.nextCrash !== undefined) await this.#handleCrash(installation);
    this.#startCrashingProcess(installation);
    if (this.environment.random.integer(2) !== 0) return;
    await this.#scale();
    await this.runDrivers(DRIVE_MS);
  }

  #startCrashingProcess(installation: Installation): void {
    const { environment } = this;
    const { random } = environment;
    const kind = pick(random, ['write', 'unseen', 'seen'] as const);
    const crashPoint: CrashPoint = { kind, number: 1 + random.integer(kind === 'write' ? 25 : 8) };
    const kinds: readonly CrashKind[] = ['crash', 'database-lost', 'database-rolled-back'];
    installation.nextCrash = pick(random, kinds);
    this.#replaceProcess(installation, environment.startProcess(installation, crashPoint));
  }

  #replaceProcess(installation: Installation, next: SoakProcess): void {
    this.environment.endProcess(installation, installation.process);
    installation.process = next;
  }

  /** Runs the driver loop of each installation for a while, then stops them: immediately, or after the current pass. */
  async runDrivers(
    forMs: number,
    onStep: () => Promise<void> | void = () => this.#jumpSometimes(),
  ): Promise<void> {
    const { environment } = this;
    const { random, clock } = environment;
    const [stop, finish] = [new AbortController(), new AbortController()];
    const signals = { signal: stop.signal, finish: finish.signal };
    const driving = environment.active.map(async (one) => {
      const process = (one.process ??= environment.startProcess(one));
      return [one, await environment.runDriver(one, process, signals)] as const;
    });
    const until = environment.now + forMs;
    while (environment.now < until && !this.hasFailed) {
      await clock.advance(1 + random.integer(BUSY_MS));
      await environment.checkInvariants();
      await onStep();
    }
    pick(random, [stop, finish]).abort();
    const outcomes = await environment.advanceUntilSettled(Promise.all(driving));
    await environment.checkInvariants();
    for (const [installation, outcome] of outcomes) {
      environment.log(`${installation.name}: driver loop ended: ${outcome}`);
      if (outcome === 'crashed') await this.#handleCrash(installation);
    }
  }

  #jumpSometimes(): void {
    const { features, random } = this.environment;
    if (features.clockJumps && random.integer(JUMP_EVERY_STEPS) === 0)
      jumpWallClock(this.environment);
  }

  /** No process runs for a while. Time goes on, and so do guests, tasks and people. */
  #beginOutage(installation: Installation): void {
    const { environment } = this;
    const forMs = (5 + environment.random.integer(60)) * MINUTE_MS;
    environment.log(`${installation.name}: no process for ${Math.round(forMs / SECOND_MS)} s`);
    environment.countFeature(OUTAGE);
    installation.pausedUntil = environment.now + forMs;
    this.startProcess(installation);
  }

  /** Stalls the process in the middle of a pass until after its lease has expired; it resumes beside its successor. */
  async #stallProcess(installation: Installation): Promise<void> {
    const { environment } = this;
    const { random, clock } = environment;
    const stalled = installation.process;
    await this.#scale();
    await this.runUntil(environment.now + (2 + random.integer(20)) * SECOND_MS);
    if (stalled === undefined || installation.process !== stalled || this.hasFailed) return;
    stalled.stall = { callsLeft: 1 + random.integer(5), ms: STALL_MS };
    installation.process = undefined;
    void environment
      .reconcileOnce(installation, stalled)
      .then(
        () => environment.log('the stalled pass finished'),
        (error: unknown) => environment.log(`the stalled pass failed: ${String(error)}`),
      )
      .then(() => environment.endProcess(installation, stalled));
    if (environment.features.clockJumps) jumpWallClock(environment);
    await clock.advance(30 * SECOND_MS);
    if (installation.nextCrash === undefined) this.startProcess(installation);
    else this.#startCrashingProcess(installation);
  }

  /** Another replica takes over: the driver has released its lease, or is gone for longer than its lease. */
  async #failOver(installation: Installation): Promise<void> {
    const { environment } = this;
    const { process: former } = installation;
    if (former?.lease === undefined || installation.nextCrash !== undefined) return;
    environment.log(`${installation.name}: failover`);
    environment.countFeature(FAILOVER);
    const standby = (installation.standby ??= environment.startProcess(installation));
    await environment.advanceUntilSettled(standby.opened.catch(() => undefined));
    // What the driver writes now, the standby does not see.
    if (environment.random.integer(2) === 0) installation.objects?.sim.watches.stall();
    await this.#scale();
    await this.runUntil(environment.now + BUSY_MS);
    if (installation.process !== former || installation.standby !== standby) return;
    installation.process = standby;
    installation.standby = former;
    if (environment.random.integer(2) === 0) await environment.releaseLease(former);
    else await environment.clock.advance(LEASE_MS + SECOND_MS);
  }

  /** Without further faults each pool must reach exactly the requested size. */
  async #settle(pickSize: (max: number) => number): Promise<void> {
    const { environment } = this;
    const sizes = new Map(
      environment.installations.map((one) => [
        one,
        new Map(one.pools.map((pool) => [pool, pickSize(one.maxSizeOf(pool))])),
      ]),
    );
    this.#clearFaults();
    for (const installation of environment.installations) installation.pausedUntil = 0;
    for (let attempt = 0; attempt < 4 && !this.hasFailed; attempt += 1) {
      cleanUpSite(environment);
      await repairSite(environment);
      if (attempt === LAST_CRASHING_ATTEMPT) this.#endCrashes();
      await this.#runUntilIdle();
      for (const [installation, byPool] of sizes) {
        for (const [pool, size] of byPool) await environment.scaleTo(installation, pool, size);
      }
    }
    await this.#runUntilIdle();
    environment.needsCleanup = false;
    if (!this.hasFailed) await checkConverged(environment, sizes);
  }

  /** A process that writes in the background could crash after the sizes were requested for the last time. */
  #endCrashes(): void {
    for (const installation of this.environment.installations) {
      const { objects, nextCrash } = installation;
      if (objects !== undefined && nextCrash !== undefined) this.startProcess(installation);
    }
  }

  #clearFaults(): void {
    for (const { sim } of this.environment.regions.values()) sim.faults.clear();
    for (const { objects } of this.environment.installations) objects?.clearFaults();
  }

  async #runUntilIdle(): Promise<void> {
    let idlePasses = 0;
    for (let pass = 0; pass < 120 && idlePasses < 2 && !this.hasFailed; pass += 1) {
      idlePasses = (await this.runPasses()) ? 0 : idlePasses + 1;
      await this.environment.clock.advance(idlePasses > 0 ? 6 * MINUTE_MS : BUSY_MS);
    }
  }
}

function isInProgress(outcome: PassReport | 'crashed' | undefined): boolean {
  if (outcome === undefined || outcome === 'crashed') return true;
  return outcome.inProgress > 0 || outcome.undecided.length > 0;
}
