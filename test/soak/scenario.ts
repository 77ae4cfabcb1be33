// SPDX-License-Identifier: Apache-2.0
// One seed: a virtual day of scaling requests, faults, crashes, stalls and external changes; then the pool settles
// without faults, and is scaled to zero.
import type { CrashPoint } from '../../src/fleet/testing/crashing-process.ts';
import type { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { applyExternalChange, cleanUpSite, deleteImages } from './external-changes.ts';
import { PHASES, pick, pickFault } from './faults.ts';
import { checkConverged } from './invariants.ts';
import type { Mutation } from './mutations.ts';
import { SoakEnvironment, type SoakProcess } from './soak-environment.ts';
import { BUSY_MS } from './soak-settings.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const IDLE_MS = 10 * MINUTE_MS;
const DRIVE_MS = 10 * MINUTE_MS;
/** Small pools are often scaled to zero; large pools have several machines in progress at the same time. */
const MAX_POOL_SIZES = [4, 2];

type EventKind = 'scale' | 'fault' | 'crash' | 'stall' | 'external-change' | 'clean-up' | 'settle';

interface PlannedEvent {
  readonly at: number;
  readonly kind: EventKind;
}

const EVENTS_PER_DAY: Readonly<Record<EventKind, number>> = {
  scale: 204,
  fault: 60,
  crash: 8,
  stall: 6,
  'external-change': 12,
  'clean-up': 72,
  settle: 2,
};

/** Every ninth seed has a fault burst: five times as many disruptions, so that they overlap. */
const FAULT_BURST_EVERY_SEEDS = 9;
const FAULT_BURST_FACTOR = 5;
const DISRUPTIONS: readonly EventKind[] = ['fault', 'crash', 'stall', 'external-change'];

function planDay(random: SeededRandom, seed: number): readonly PlannedEvent[] {
  const isFaultBurst = seed % FAULT_BURST_EVERY_SEEDS === 0;
  const countPerDay = (kind: EventKind) =>
    EVENTS_PER_DAY[kind] * (isFaultBurst && DISRUPTIONS.includes(kind) ? FAULT_BURST_FACTOR : 1);
  const counts = Object.keys(EVENTS_PER_DAY).map(
    (kind) => [kind, countPerDay(kind as EventKind)] as const,
  );
  const events = counts.flatMap(([kind, count]) =>
    Array.from({ length: count }, (_, at) => ({
      kind: kind as EventKind,
      at: Math.floor(((at + random.fraction()) * DAY_MS) / count),
    })),
  );
  return events.toSorted((a, b) => a.at - b.at);
}

export interface SeedResult {
  readonly seed: number;
  readonly violations: readonly string[];
  readonly coverage: Readonly<Record<string, number>>;
  readonly counts: Readonly<Record<string, number>>;
  readonly hash: string;
}

export async function runSeed(seed: number, mutation: Mutation = {}): Promise<SeedResult> {
  // A seed creates thousands of errors; stack traces would only cost time.
  Error.stackTraceLimit = 0;
  const run = new SeedRun(new SoakEnvironment(seed, mutation));
  await run.run();
  const { violations, coverage, hash, faultCount, externalChangeCount } = run.environment;
  return {
    seed,
    violations,
    coverage: Object.fromEntries(coverage),
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

class SeedRun {
  readonly environment: SoakEnvironment;
  scalings = 0;
  crashes = 0;
  readonly #start: number;
  #process: SoakProcess;
  #losesDatabaseOnCrash = false;
  #willCrash = false;

  constructor(environment: SoakEnvironment) {
    this.environment = environment;
    this.#start = environment.now;
    this.#process = environment.startProcess();
  }

  get hours(): number {
    return Math.floor((this.environment.now - this.#start) / HOUR_MS);
  }

  async run(): Promise<void> {
    for (const event of planDay(this.environment.random, this.environment.seed)) {
      await this.#runUntil(this.#start + event.at);
      await this.#apply(event.kind);
      if (this.environment.violations.length > 0) return;
    }
    await this.#runUntil(this.#start + DAY_MS);
    await this.#settle(this.#pickSize());
    await this.#settle(0);
    this.#checkIntensity();
  }

  /** A seed with too few events proves nothing. */
  #checkIntensity(): void {
    const { faultCount, externalChangeCount } = this.environment;
    const isFull =
      this.scalings >= 200 && faultCount >= 20 && this.crashes >= 5 && externalChangeCount > 0;
    if (isFull && this.hours >= 24) return;
    this.environment.reportViolation(
      `the seed has too few events: ${this.scalings} scalings, ${faultCount} faults, ${this.crashes} crashes`,
    );
  }

  async #runUntil(at: number): Promise<void> {
    const { environment } = this;
    while (environment.now < at && environment.violations.length === 0) {
      const isBusy = await this.#runPass();
      const pauseMs = Math.min(isBusy ? BUSY_MS : IDLE_MS, Math.max(0, at - environment.now));
      await environment.region.clock.advance(pauseMs);
    }
  }

  /** Returns whether work is in progress. */
  async #runPass(): Promise<boolean> {
    const outcome = await this.environment.runPass(this.#process);
    if (outcome === 'crashed') await this.#handleCrash();
    if (outcome === undefined || outcome === 'crashed') return true;
    return outcome.inProgress > 0 || outcome.undecided.length > 0;
  }

  async #handleCrash(): Promise<void> {
    const { environment } = this;
    const row = this.#losesDatabaseOnCrash ? 'database-lost' : 'crash';
    this.crashes += 1;
    for (const { phase } of await environment.machines()) {
      if (PHASES.some((one) => one === phase)) environment.countFault(row, phase);
    }
    environment.log(row);
    if (this.#losesDatabaseOnCrash) environment.loseDatabase();
    // In one of three cases the recovery crashes too.
    if (environment.random.integer(3) === 0) return this.#startCrashingProcess();
    this.#willCrash = false;
    this.#process = environment.startProcess();
  }

  async #apply(kind: EventKind): Promise<void> {
    const { environment } = this;
    if (kind === 'scale') await this.#scale();
    else if (kind === 'fault') this.#injectFault();
    else if (kind === 'crash') await this.#scheduleCrash();
    else if (kind === 'stall') await this.#stallProcess();
    else if (kind === 'external-change') applyExternalChange(environment);
    else if (kind === 'clean-up') cleanUpSite(environment);
    else await this.#settle(this.#pickSize());
  }

  #pickSize(): number {
    const { random, seed } = this.environment;
    return random.integer((MAX_POOL_SIZES[Math.floor(seed / 4) % MAX_POOL_SIZES.length] ?? 0) + 1);
  }

  async #scale(): Promise<void> {
    this.scalings += 1;
    await this.environment.scaleTo(this.#pickSize());
  }

  #injectFault(): void {
    const { environment } = this;
    const { row, column, rules } = pickFault(environment.random);
    if (column === 'placed') deleteImages(environment);
    for (const rule of rules) {
      environment.faultNames.set(rule, row);
      environment.region.sim.faults.add(rule);
    }
  }

  /** Lets the process crash soon. A process that was to crash and has not crashed yet is replaced now. */
  async #scheduleCrash(): Promise<void> {
    if (this.#willCrash) await this.#handleCrash();
    this.#startCrashingProcess();
    if (this.environment.random.integer(2) === 0) await this.#runDriver();
  }

  #startCrashingProcess(): void {
    const { random } = this.environment;
    const kind = pick(random, ['write', 'unseen', 'seen'] as const);
    const crashPoint: CrashPoint = { kind, number: 1 + random.integer(kind === 'write' ? 25 : 8) };
    this.#losesDatabaseOnCrash = random.integer(3) === 0;
    this.#willCrash = true;
    this.#process = this.environment.startProcess(crashPoint);
  }

  /** Runs the driver loop for a while, then stops it: immediately, or after the current pass. */
  async #runDriver(): Promise<void> {
    const { environment } = this;
    await this.#scale();
    const [stop, finish] = [new AbortController(), new AbortController()];
    const driving = environment.runDriver(this.#process, {
      signal: stop.signal,
      finish: finish.signal,
    });
    const state = { isOver: false };
    const end = () => {
      state.isOver = true;
    };
    driving.then(end, end);
    const until = environment.now + DRIVE_MS;
    while (!state.isOver && environment.now < until && environment.violations.length === 0) {
      await environment.region.clock.advance(1 + environment.random.integer(BUSY_MS));
      await environment.checkInvariants();
    }
    pick(environment.random, [stop, finish]).abort();
    const outcome = await environment.advanceUntilSettled(driving);
    environment.log(`driver loop ended: ${outcome}`);
    await environment.checkInvariants();
    if (outcome === 'crashed') await this.#handleCrash();
  }

  /** Stalls the process in the middle of a pass until after its lease has expired; it resumes beside its successor. */
  async #stallProcess(): Promise<void> {
    const { environment } = this;
    const stalled = this.#process;
    await this.#scale();
    await this.#runUntil(environment.now + (2 + environment.random.integer(20)) * SECOND_MS);
    if (this.#process !== stalled || environment.violations.length > 0) return;
    stalled.stall = { callsLeft: 1 + environment.random.integer(5), ms: 6 * MINUTE_MS };
    void environment.reconcileOnce(stalled).then(
      () => environment.log('the stalled pass finished'),
      (error: unknown) => environment.log(`the stalled pass failed: ${String(error)}`),
    );
    await environment.region.clock.advance(30 * SECOND_MS);
    if (this.#willCrash) this.#startCrashingProcess();
    else this.#process = environment.startProcess();
  }

  /** Without further faults the site must reach exactly the requested size. */
  async #settle(size: number): Promise<void> {
    const { environment } = this;
    environment.region.sim.faults.clear();
    for (let attempt = 0; attempt < 4; attempt += 1) {
      cleanUpSite(environment);
      await this.#runUntilIdle();
      await environment.scaleTo(size);
    }
    await this.#runUntilIdle();
    environment.needsCleanup = false;
    await checkConverged(environment, size);
  }

  async #runUntilIdle(): Promise<void> {
    let idlePasses = 0;
    for (let pass = 0; pass < 120 && idlePasses < 2; pass += 1) {
      idlePasses = (await this.#runPass()) ? 0 : idlePasses + 1;
      await this.environment.region.clock.advance(idlePasses > 0 ? 6 * MINUTE_MS : BUSY_MS);
      if (this.environment.violations.length > 0) return;
    }
  }
}
