// SPDX-License-Identifier: Apache-2.0

import { WorkerProcess } from './worker-process.ts';
import type { WorkerReport } from './worker-report.ts';

interface ContestOptions {
  readonly workers: number;
  readonly kills: number;
}

/**
 * Runs workers that contend for one lease on one database. Every step follows a report of a worker, never a timer. The
 * worker continues after its report, so a kill can interrupt it at any instruction.
 */
export class LeaseContest {
  readonly #path: string;
  readonly #options: ContestOptions;
  readonly #workers: WorkerProcess[] = [];
  #killed = 0;
  #spawned = 0;
  #writesUntilKill = 1;
  #onReport: (report: WorkerReport, by: WorkerProcess) => void = () => undefined;

  constructor(path: string, rules: ContestOptions) {
    this.#path = path;
    this.#options = rules;
  }

  get killed(): number {
    return this.#killed;
  }

  /** Ends when all kills are done and a worker has written after the last one. Returns all reports. */
  async runWithKills(): Promise<readonly WorkerReport[]> {
    this.#onReport = (report) => {
      if (report.event !== 'wrote') return;
      this.#writesUntilKill -= 1;
      if (this.#writesUntilKill > 0) return;
      if (this.#killed < this.#options.kills) this.#killWorker();
      else this.#finishAll();
    };
    for (let n = 0; n < this.#options.workers; n += 1) this.#spawn();
    return this.#collectReports();
  }

  /** Pauses one holder until another worker has taken the lease; then it continues with the old one. */
  async runWithPausedHolder(): Promise<{
    readonly sleeper: number;
    readonly reports: readonly WorkerReport[];
  }> {
    let sleeper: WorkerProcess | undefined;
    let token = Number.POSITIVE_INFINITY;
    this.#onReport = (report, by) => {
      if (report.event === 'wrote' && sleeper === undefined) {
        sleeper = by;
        by.send('pause');
      }
      if (report.event === 'paused') token = report.token;
      if (report.event === 'acquired' && by !== sleeper && report.token > token)
        sleeper?.send('resume');
      if (report.event === 'refused' && report.token === token) this.#finishAll();
    };
    for (let n = 0; n < this.#options.workers; n += 1) this.#spawn();
    const reports = await this.#collectReports();
    return { sleeper: token, reports };
  }

  /** Ends workers that a failed test left running. */
  killAll(): void {
    for (const worker of this.#workers) worker.kill();
  }

  #spawn(): void {
    this.#spawned += 1;
    const args = ['contend', this.#path, `worker-${this.#spawned}`];
    this.#workers.push(new WorkerProcess(args, (report, by) => this.#onReport(report, by)));
  }

  /** Mostly the holder; sometimes the newest worker, which may be opening the database. */
  #killWorker(): void {
    const alive = this.#workers.filter((worker) => !worker.isKilled);
    const holder = alive.find((worker) => worker.reports.at(-1)?.event === 'wrote') ?? alive[0];
    const victim = Math.random() < 0.75 ? holder : alive.at(-1);
    victim?.kill();
    this.#killed += 1;
    this.#writesUntilKill = 1 + Math.floor(Math.random() * 12);
    this.#spawn();
  }

  #finishAll(): void {
    for (const worker of this.#workers) worker.finish();
  }

  async #collectReports(): Promise<readonly WorkerReport[]> {
    // The list grows while others end: wait for new workers too.
    for (let index = 0; index < this.#workers.length; index += 1) await this.#workers[index]?.ended;
    return this.#workers.flatMap(({ reports }) => reports);
  }
}
