// SPDX-License-Identifier: Apache-2.0
// The demo as a process: killed in every scene, started again, and played once in each mode.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SCENES } from '../../scripts/demo/scenes.ts';
import { root } from '../support/pvescaler.ts';

/** Only ends a failed test: the machine may be loaded. */
const TIMEOUT_MS = 600_000;

let folder: string;
let started: ChildProcess[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'demo-test-'));
});
afterEach(() => {
  for (const child of started) child.kill('SIGKILL');
  started = [];
  rmSync(folder, { recursive: true, force: true });
});

interface Demo {
  readonly child: ChildProcess;
  readonly ended: Promise<unknown[]>;
  output(): string;
  /** Resolves when the text was written. */
  wrote(text: string): Promise<void>;
  wroteMatch(pattern: RegExp): Promise<void>;
}

function startDemo(...args: readonly string[]): Demo {
  return startProgram(process.execPath, [join(root, 'scripts/demo.ts'), ...args]);
}

function startProgram(program: string, args: readonly string[]): Demo {
  const child = spawn(program, args, {
    cwd: root,
    // npm would keep its cache of compiled code in the folder.
    env: { PATH: process.env['PATH'], TMPDIR: folder, NODE_DISABLE_COMPILE_CACHE: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  started.push(child);
  let written = '';
  const waiting = new Set<() => void>();
  const read = (chunk: Buffer) => {
    written += chunk.toString();
    for (const check of waiting) check();
  };
  child.stdout.on('data', read);
  child.stderr.on('data', read);
  const ended = once(child, 'exit');
  const wait = (what: string, isDone: () => boolean) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const check = () => {
      if (isDone()) resolve();
    };
    waiting.add(check);
    void ended.then(() => reject(new Error(`the demo ended without "${what}":\n${written}`)));
    check();
    return promise;
  };
  return {
    child,
    ended,
    output: () => written,
    wrote: (text) => wait(text, () => written.includes(text)),
    wroteMatch: (pattern) => wait(pattern.source, () => pattern.test(written)),
  };
}

/** Processes whose command line names the folder. */
function listProcesses(): readonly string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      } catch {
        return [];
      }
    })
    .filter((line) => line.includes(folder));
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const isConnected = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return isConnected;
}

function portsOf(output: string): readonly number[] {
  return [...new Set([...output.matchAll(/127\.0\.0\.1:(\d+)/g)].map(([, port]) => Number(port)))];
}

async function expectNothingLeft(output: string): Promise<void> {
  const ports = portsOf(output);
  expect(ports).toHaveLength(2);
  // After SIGKILL the daemon ends by itself.
  await expect.poll(listProcesses).toEqual([]);
  await expect.poll(() => readdirSync(folder)).toEqual([]);
  // A process that ends has no command line any more when it still has its sockets.
  for (const port of ports) await expect.poll(() => isOpen(port)).toBe(false);
}

describe('npm run demo', () => {
  it.each([...SCENES, { name: 'idle', title: 'your turn' }])(
    'can be killed and started again in scene $name, and leaves nothing behind',
    async ({ name: scene, title }) => {
      const first = startDemo('--scene', scene);
      await first.wrote(`${title}\n`);
      first.child.kill('SIGKILL');
      await first.ended;
      await expectNothingLeft(first.output());
      const second = startDemo('--scene', scene);
      await second.wrote(`${title}\n`);
      second.child.kill('SIGINT');
      expect(await second.ended).toEqual([0, null]);
      await expectNothingLeft(second.output());
    },
    TIMEOUT_MS,
  );

  it.each(['SIGINT', 'SIGTERM', 'SIGKILL'] as const)(
    'leaves nothing behind when it gets %s while machines are created',
    async (signal) => {
      const demo = startDemo();
      await demo.wrote(' created\n');
      demo.child.kill(signal);
      await demo.ended;
      await expectNothingLeft(demo.output());
    },
    TIMEOUT_MS,
  );

  it.each(['SIGTERM', 'SIGKILL'] as const)(
    'ends when the npm that started it is ended by %s',
    async (signal) => {
      const npm = startProgram('npm', ['run', 'demo', '--', '--scene', 'idle']);
      await npm.wrote('your turn\n');
      npm.child.kill(signal);
      await npm.ended;
      await expectNothingLeft(npm.output());
    },
    TIMEOUT_MS,
  );

  it(
    'takes other ports than demos that start at the same time',
    async () => {
      const demos = Array.from({ length: 4 }, () => startDemo('--scene', 'idle'));
      await Promise.all(demos.map((demo) => demo.wrote('your turn\n')));
      const ports = demos.flatMap((demo) => portsOf(demo.output()));
      expect(new Set(ports).size).toBe(2 * demos.length);
      for (const { child } of demos) child.kill('SIGINT');
      for (const { ended } of demos) expect(await ended).toEqual([0, null]);
      for (const demo of demos) await expectNothingLeft(demo.output());
    },
    TIMEOUT_MS,
  );

  it(
    'ends at Ctrl-C while the pods of a job run on its machines',
    async () => {
      const demo = startDemo('--scene', 'batch');
      // 8 pods of services and at least one of the job.
      await demo.wroteMatch(/ (?:9|1\d) +\d+ *(?:\S.*)?$/m);
      demo.child.kill('SIGINT');
      expect(await demo.ended).toEqual([0, null]);
      await expectNothingLeft(demo.output());
    },
    TIMEOUT_MS,
  );

  it.each(['standalone', 'externalgrpc'])(
    'plays one day with --once --mode %s, and every pod runs',
    async (mode) => {
      const demo = startDemo('--once', '--mode', mode);
      const [code] = await demo.ended;
      expect(`${demo.output()}\nexit ${String(code)}`).toMatch(
        /\n(\d+) of \1 pods ran on at most \d+ nodes\. Nothing was left behind\.[^]*exit 0$/,
      );
      expect(demo.output()).toMatch(/VMs +nodes +pending[^]*VM 1250 on pve\d created/);
      expect(demo.output()).toMatch(/host pve\d loses power[^]*host pve\d is on again/);
      await expectNothingLeft(demo.output());
    },
    TIMEOUT_MS,
  );

  it('explains its options, and refuses others', async () => {
    const help = startDemo('--help');
    expect(await help.ended).toEqual([0, null]);
    expect(help.output()).toContain('--mode MODE');
    const wrong = startDemo('--mode', 'other');
    expect(await wrong.ended).toEqual([1, null]);
    expect(wrong.output()).toBe('--mode is standalone or externalgrpc, not other\n');
  });
});
