// SPDX-License-Identifier: Apache-2.0
import type { Said } from './said.ts';
import { WorkerProcess } from './worker-process.ts';

interface Rules {
  readonly fighters: number;
  readonly kills: number;
}

/**
 * Keeps a number of workers fighting over one database. Everything happens in answer to something a worker
 * said, never after a time; the worker has gone on meanwhile, so a kill meets it anywhere.
 */
export class Arena {
  readonly #path: string;
  readonly #rules: Rules;
  readonly #workers: WorkerProcess[] = [];
  #killed = 0;
  #spawned = 0;
  #untilKill = 1;
  #onSaid: (said: Said, by: WorkerProcess) => void = () => undefined;

  constructor(path: string, rules: Rules) {
    this.#path = path;
    this.#rules = rules;
  }

  get killed(): number {
    return this.#killed;
  }

  /** Until all kills are done and somebody has driven after the last one. Returns all that was said. */
  async fight(): Promise<readonly Said[]> {
    this.#onSaid = (said) => {
      if (said.event !== 'wrote') return;
      this.#untilKill -= 1;
      if (this.#untilKill > 0) return;
      if (this.#killed < this.#rules.kills) this.#killOne();
      else this.#finish();
    };
    for (let n = 0; n < this.#rules.fighters; n += 1) this.#spawn();
    return this.#everythingSaid();
  }

  /** One driver is paused until another one has taken its lease; then it goes on as if nothing had been. */
  async oversleep(): Promise<{ readonly sleeper: number; readonly fought: readonly Said[] }> {
    let sleeper: WorkerProcess | undefined;
    let token = Number.POSITIVE_INFINITY;
    this.#onSaid = (said, by) => {
      if (said.event === 'wrote' && sleeper === undefined) {
        sleeper = by;
        by.order('pause');
      }
      if (said.event === 'paused') token = said.token;
      if (said.event === 'acquired' && by !== sleeper && said.token > token)
        sleeper?.order('resume');
      if (said.event === 'refused' && said.token === token) this.#finish();
    };
    for (let n = 0; n < this.#rules.fighters; n += 1) this.#spawn();
    const fought = await this.#everythingSaid();
    return { sleeper: token, fought };
  }

  /** Whatever a test that failed half way left running. */
  killAll(): void {
    for (const worker of this.#workers) worker.kill();
  }

  #spawn(): void {
    this.#spawned += 1;
    const args = ['fight', this.#path, `fighter-${this.#spawned}`];
    this.#workers.push(new WorkerProcess(args, (said, by) => this.#onSaid(said, by)));
  }

  /** Mostly the driver; now and then one that waits or has just begun, to meet it while it opens the file. */
  #killOne(): void {
    const alive = this.#workers.filter((worker) => !worker.isKilled);
    const driver = alive.find((worker) => worker.said.at(-1)?.event === 'wrote') ?? alive[0];
    const victim = Math.random() < 0.75 ? driver : alive.at(-1);
    victim?.kill();
    this.#killed += 1;
    this.#untilKill = 1 + Math.floor(Math.random() * 12);
    this.#spawn();
  }

  #finish(): void {
    for (const worker of this.#workers) worker.finish();
  }

  async #everythingSaid(): Promise<readonly Said[]> {
    // Workers that are spawned while others end are awaited too.
    for (let index = 0; index < this.#workers.length; index += 1) await this.#workers[index]?.ended;
    return this.#workers.flatMap(({ said }) => said);
  }
}
