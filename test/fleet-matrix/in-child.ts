// SPDX-License-Identifier: Apache-2.0
// Loaded into the program under test by `node --import`; the wishes stand in the query of this module's URL. Time
// runs faster, and the process dies by SIGKILL at the instant asked for. The program knows nothing of it.
import { subscribe } from 'node:diagnostics_channel';
import { writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { callName } from './call-name.ts';

const wishes = new URL(import.meta.url).searchParams;
const speed = Number(wishes.get('speed'));
const epoch = Number(wishes.get('epoch'));
const ahead = Number(wishes.get('ahead'));
const report = wishes.get('report');

function die(): void {
  process.kill(process.pid, 'SIGKILL');
}

function hastenTime(): void {
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

/** Every transaction of the store ends in one COMMIT; a few are the schema's own. */
function countWrites(last: number): void {
  // oxlint-disable-next-line typescript/unbound-method -- it is called with its own database below
  const { exec } = DatabaseSync.prototype;
  let writes = 0;
  DatabaseSync.prototype.exec = function execAndCount(this: DatabaseSync, sql: string): void {
    exec.call(this, sql);
    if (sql !== 'COMMIT') return;
    writes += 1;
    if (writes === last) die();
  };
  process.on('exit', () => {
    if (report !== null) writeFileSync(report, String(writes));
  });
}

/** One turn of the event loop after the last byte of an answer: it was seen, and hardly more. */
function dieAfterAnswer(name: string, number: number): void {
  let seen = 0;
  subscribe('undici:request:trailers', (message) => {
    const { request } = message as { request: { method: string; path: string } };
    if (callName(request.method, request.path) !== name) return;
    seen += 1;
    if (seen === number) setImmediate(die);
  });
}

hastenTime();
countWrites(Number(wishes.get('write') ?? 0));
const call = wishes.get('call');
if (call !== null) dieAfterAnswer(call, Number(wishes.get('number')));
