// SPDX-License-Identifier: Apache-2.0
// A seed: a day of scalings, faults, crashes, stalls and meddling, then quiet, then nothing.
import type { CrashPoint } from '../../src/fleet/testing/crashing-process.ts';
import type { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { aFault, PHASES, pick } from './faults.ts';
import { checkReached } from './invariants.ts';
import { meddle, removeImages, tidyUp } from './meddling.ts';
import type { Sabotage } from './sabotage.ts';
import { BUSY_MS } from './setting.ts';
import { type Process, World } from './world.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const IDLE_MS = 10 * MINUTE_MS;
const DRIVE_MS = 10 * MINUTE_MS;
/** Small pools come and go wholly, large ones have several machines under way. */
const LARGEST = [4, 2];

type Kind = 'scale' | 'fault' | 'crash' | 'stall' | 'meddle' | 'tidy' | 'quiet';

interface Event {
  readonly at: number;
  readonly kind: Kind;
}

/** How often a day. */
const HOW_OFTEN: Readonly<Record<Kind, number>> = {
  scale: 204,
  fault: 60,
  crash: 8,
  stall: 6,
  meddle: 12,
  tidy: 72,
  quiet: 2,
};

/** Every so many seeds troubles come thick and fast, and meet each other. */
const STORM_EVERY = 9;
const STORM = 5;
const TROUBLES: readonly Kind[] = ['fault', 'crash', 'stall', 'meddle'];

function planOf(random: SeededRandom, seed: number): readonly Event[] {
  const isStormy = seed % STORM_EVERY === 0;
  const often = (kind: Kind) => HOW_OFTEN[kind] * (isStormy && TROUBLES.includes(kind) ? STORM : 1);
  const counts = Object.keys(HOW_OFTEN).map((kind) => [kind, often(kind as Kind)] as const);
  const events = counts.flatMap(([kind, count]) =>
    Array.from({ length: count }, (_, at) => ({
      kind: kind as Kind,
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

export async function runSeed(seed: number, sabotage: Sabotage = {}): Promise<SeedResult> {
  // Thousands of errors are made in a seed, and nobody reads where.
  Error.stackTraceLimit = 0;
  const run = new Run(new World(seed, sabotage));
  await run.all();
  const { violations, coverage, hash, struck, meddled } = run.world;
  return {
    seed,
    violations,
    coverage: Object.fromEntries(coverage),
    counts: {
      scalings: run.scalings,
      faults: struck,
      crashes: run.crashes,
      meddled,
      hours: run.hours,
    },
    hash,
  };
}

class Run {
  readonly world: World;
  scalings = 0;
  crashes = 0;
  readonly #start: number;
  #process: Process;
  #losesDatabase = false;
  #isMortal = false;

  constructor(world: World) {
    this.world = world;
    this.#start = world.now;
    this.#process = world.aProcess();
  }

  get hours(): number {
    return Math.floor((this.world.now - this.#start) / HOUR_MS);
  }

  async all(): Promise<void> {
    for (const event of planOf(this.world.random, this.world.seed)) {
      await this.#until(this.#start + event.at);
      await this.#happen(event.kind);
      if (this.world.violations.length > 0) return;
    }
    await this.#until(this.#start + DAY_MS);
    await this.#quiet(this.#aSize());
    await this.#quiet(0);
    this.#judgeShape();
  }

  /** A seed that does too little proves nothing. */
  #judgeShape(): void {
    const { struck, meddled } = this.world;
    const isFull = this.scalings >= 200 && struck >= 20 && this.crashes >= 5 && meddled > 0;
    if (isFull && this.hours >= 24) return;
    this.world.violated(
      `the seed is too tame: ${this.scalings} scalings, ${struck} faults, ${this.crashes} crashes`,
    );
  }

  async #until(at: number): Promise<void> {
    const { world } = this;
    while (world.now < at && world.violations.length === 0) {
      const isBusy = await this.#step();
      const pauseMs = Math.min(isBusy ? BUSY_MS : IDLE_MS, Math.max(0, at - world.now));
      await world.region.clock.advance(pauseMs);
    }
  }

  /** Whether something is under way. */
  async #step(): Promise<boolean> {
    const outcome = await this.world.step(this.#process);
    if (outcome === 'dead') await this.#die();
    if (outcome === undefined || outcome === 'dead') return true;
    return outcome.inProgress > 0 || outcome.undecided.length > 0;
  }

  async #die(): Promise<void> {
    const { world } = this;
    const row = this.#losesDatabase ? 'database-lost' : 'crash';
    this.crashes += 1;
    for (const { phase } of await world.machines()) {
      if (PHASES.some((one) => one === phase)) world.cover(row, phase);
    }
    world.log(row);
    if (this.#losesDatabase) world.loseDatabase();
    // Recovery is cut short now and then.
    if (world.random.integer(3) === 0) return this.#replaceByMortal();
    this.#isMortal = false;
    this.#process = world.aProcess();
  }

  async #happen(kind: Kind): Promise<void> {
    const { world } = this;
    if (kind === 'scale') await this.#scale();
    else if (kind === 'fault') this.#arm();
    else if (kind === 'crash') await this.#doom();
    else if (kind === 'stall') await this.#stall();
    else if (kind === 'meddle') meddle(world);
    else if (kind === 'tidy') tidyUp(world);
    else await this.#quiet(this.#aSize());
  }

  #aSize(): number {
    const { random, seed } = this.world;
    return random.integer((LARGEST[Math.floor(seed / 4) % LARGEST.length] ?? 0) + 1);
  }

  async #scale(): Promise<void> {
    this.scalings += 1;
    await this.world.scaleTo(this.#aSize());
  }

  #arm(): void {
    const { world } = this;
    const { row, column, rules } = aFault(world.random);
    if (column === 'placed') removeImages(world);
    for (const rule of rules) {
      world.rows.set(rule, row);
      world.region.sim.faults.add(rule);
    }
  }

  /** The process will die soon; one that was to die and has not, dies now. */
  async #doom(): Promise<void> {
    if (this.#isMortal) await this.#die();
    this.#replaceByMortal();
    if (this.world.random.integer(2) === 0) await this.#drive();
  }

  #replaceByMortal(): void {
    const { random } = this.world;
    const kind = pick(random, ['write', 'unseen', 'seen'] as const);
    const wish: CrashPoint = { kind, number: 1 + random.integer(kind === 'write' ? 25 : 8) };
    this.#losesDatabase = random.integer(3) === 0;
    this.#isMortal = true;
    this.#process = this.world.aProcess(wish);
  }

  /** The process drives by itself for a while, and is stopped if it lives: at once, or after its round. */
  async #drive(): Promise<void> {
    const { world } = this;
    await this.#scale();
    const [stop, finish] = [new AbortController(), new AbortController()];
    const driving = world.drive(this.#process, { signal: stop.signal, finish: finish.signal });
    const state = { isOver: false };
    const end = () => {
      state.isOver = true;
    };
    driving.then(end, end);
    const until = world.now + DRIVE_MS;
    while (!state.isOver && world.now < until && world.violations.length === 0) {
      await world.region.clock.advance(1 + world.random.integer(BUSY_MS));
      await world.judge();
    }
    pick(world.random, [stop, finish]).abort();
    const outcome = await world.settled(driving);
    world.log(`driving: ${outcome}`);
    await world.judge();
    if (outcome === 'dead') await this.#die();
  }

  /** The process hangs in the middle of a round until long after its lease, and wakes up beside its successor. */
  async #stall(): Promise<void> {
    const { world } = this;
    const stalled = this.#process;
    await this.#scale();
    await this.#until(world.now + (2 + world.random.integer(20)) * SECOND_MS);
    if (this.#process !== stalled || world.violations.length > 0) return;
    stalled.stall = { callsLeft: 1 + world.random.integer(5), ms: 6 * MINUTE_MS };
    void world.round(stalled).then(
      () => world.log('the stalled round came to its end'),
      (error: unknown) => world.log(`the stalled round: ${String(error)}`),
    );
    await world.region.clock.advance(30 * SECOND_MS);
    if (this.#isMortal) this.#replaceByMortal();
    else this.#process = world.aProcess();
  }

  /** No more faults: what is wanted is reached, exactly. */
  async #quiet(size: number): Promise<void> {
    const { world } = this;
    world.region.sim.faults.clear();
    for (let turn = 0; turn < 4; turn += 1) {
      tidyUp(world);
      await this.#untilAtRest();
      await world.scaleTo(size);
    }
    await this.#untilAtRest();
    world.hasWreckage = false;
    await checkReached(world, size);
  }

  async #untilAtRest(): Promise<void> {
    let quiet = 0;
    for (let round = 0; round < 120 && quiet < 2; round += 1) {
      quiet = (await this.#step()) ? 0 : quiet + 1;
      await this.world.region.clock.advance(quiet > 0 ? 6 * MINUTE_MS : BUSY_MS);
      if (this.world.violations.length > 0) return;
    }
  }
}
