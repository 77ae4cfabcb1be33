// SPDX-License-Identifier: Apache-2.0
// Loaded into the program under test by `node --import`. The query of this module's URL has the options. Time runs
// faster, and the process kills itself by SIGKILL at the chosen point. The program itself is unchanged.
import { subscribe } from 'node:diagnostics_channel';
import { writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { callName } from './call-name.ts';

const options = new URL(import.meta.url).searchParams;
const speed = Number(options.get('speed'));
const epoch = Number(options.get('epoch'));
const ahead = Number(options.get('ahead'));
const report = options.get('report');

function killSelf(): void {
  process.kill(process.pid, 'SIGKILL');
}

function speedUpTime(): void {
  const { now } = Date;
  const monotonic = performance.now.bind(performance);
  const { setTimeout: later, setInterval: often } = globalThis;
  Date.now = () => Math.round(epoch + ahead + (now() - epoch) * speed);
  Object.defineProperty(performance, 'now', { value: () => monotonic() * speed });
  const faster =
    (timer: typeof later | typeof often) =>
    (work: () => void, ms = 0, ...rest: []) =>
      timer(work, ms / speed, ...rest);
  Object.assign(globalThis, { setTimeout: faster(later), setInterval: faster(often) });
}

/** Every transaction of the store ends in one COMMIT; a few belong to the schema migration. */
function countWritesAndKillAt(last: number): void {
  // oxlint-disable-next-line typescript/unbound-method -- called with its own database below
  const { exec } = DatabaseSync.prototype;
  let writes = 0;
  DatabaseSync.prototype.exec = function execAndCount(this: DatabaseSync, sql: string): void {
    exec.call(this, sql);
    if (sql !== 'COMMIT') return;
    writes += 1;
    if (writes === last) killSelf();
  };
  process.on('exit', () => {
    if (report !== null) writeFileSync(report, String(writes));
  });
}

/** Kills one event-loop turn after the last byte of the response: it was received, and little else was done. */
function killAfterResponse(name: string, number: number): void {
  let seen = 0;
  subscribe('undici:request:trailers', (message) => {
    const { request } = message as { request: { method: string; path: string } };
    if (callName(request.method, request.path) !== name) return;
    seen += 1;
    if (seen === number) setImmediate(killSelf);
  });
}

speedUpTime();
countWritesAndKillAt(Number(options.get('write') ?? 0));
const call = options.get('call');
if (call !== null) killAfterResponse(call, Number(options.get('number')));
