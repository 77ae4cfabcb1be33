// SPDX-License-Identifier: Apache-2.0
// The script that starts a task, in a real shell with real processes; only pvesh is a stand-in.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startScript } from './command.ts';

const UPID = 'UPID:pve1:00001234:00001234:00001234:qmstart:100:root@pam:';
const hasPrograms = ['pgrep', 'ps', 'setsid', 'mktemp'].every(
  (name) => spawnSync('sh', ['-c', `command -v ${name}`]).status === 0,
);
const isRoot = userInfo().uid === 0;

function run(body: string) {
  const folder = mkdtempSync(join(tmpdir(), 'start-script-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const program = join(folder, 'pvesh');
  writeFileSync(program, `#!/bin/bash\nprintf '%s\\0' "$@" >${folder}/args\n${body}\n`);
  chmodSync(program, 0o755);
  const script = startScript({
    method: 'POST',
    path: '/nodes/pve1/qemu/100/status/start',
    parameters: [['description', `it's $(touch ${folder}/injected)\n"é"`]],
  });
  const result = spawnSync('sh', ['-s'], {
    input: script,
    encoding: 'utf8',
    env: { PATH: `${folder}:/usr/bin:/bin` },
  });
  return { folder, ...result };
}

describe.skipIf(!hasPrograms || !isRoot)('the script that starts a task', () => {
  it('ends with the id of the task while pvesh still waits for it', () => {
    const { status, stdout, folder } = run(
      `bash -c 'exec -a "task ${UPID}" sleep 2' & wait; echo done >"$(dirname "$0")/done"`,
    );
    expect([status, stdout]).toEqual([0, `"${UPID}"\n`]);
    expect(existsSync(join(folder, 'done'))).toBe(false);
    const [verb, path, option, text] = readFileSync(join(folder, 'args'), 'utf8').split('\0');
    expect([verb, path, option]).toEqual([
      'create',
      '/nodes/pve1/qemu/100/status/start',
      '--description',
    ]);
    expect(text).toBe(`it's $(touch ${folder}/injected)\n"é"`);
    expect(existsSync(join(folder, 'injected'))).toBe(false);
  });

  it('passes on what pvesh printed, and its exit code, when there is no task', () => {
    const refused = run('echo out; echo "400 Parameter verification failed." >&2; exit 255');
    expect([refused.status, refused.stdout, refused.stderr]).toEqual([
      255,
      'out\n',
      '400 Parameter verification failed.\n',
    ]);
    expect(run('echo fine').status).toBe(0);
    expect(readdirSync('/run').filter((name) => name.startsWith('pvescaler.'))).toEqual([]);
  });
});
