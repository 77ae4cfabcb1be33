// SPDX-License-Identifier: Apache-2.0
// Reads the files of a guest's disk without booting or mounting it.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';

function run(
  program: string,
  args: readonly string[],
  isFine: (status: number) => boolean,
): string {
  const { status, stdout, stderr } = spawnSync(program, [...args], {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  });
  if (status === null || !isFine(status))
    throw new Error(`${program} ${args.join(' ')}: exit code ${status}\n${stderr}`);
  return stdout;
}

/** Extracts the files of the disk into a folder below `folder` and returns it. */
export function extractDisk(disk: string, folder: string): string {
  const raw = `${disk}.raw`;
  const target = mkdtempSync(join(folder, 'files-'));
  run('qemu-img', ['convert', '-O', 'raw', disk, raw], (status) => status === 0);
  // Replays the journal; exit code 1: something was corrected.
  run('e2fsck', ['-f', '-y', raw], (status) => status <= 1);
  run('debugfs', ['-R', `rdump / ${target}`, raw], (status) => status === 0);
  rmSync(raw);
  return target;
}

/** Paths of the files that contain one of the texts. */
export function findFilesWith(folder: string, texts: readonly string[]): readonly string[] {
  const patterns = texts.flatMap((text) => ['-e', text]);
  const args = ['-r', '-l', '-a', '-F', '--no-messages', ...patterns, '.'];
  const { stdout } = spawnSync('grep', args, { cwd: folder, encoding: 'utf8' });
  return stdout.split('\n').filter((path) => path !== '');
}
