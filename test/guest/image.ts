// SPDX-License-Identifier: Apache-2.0
// The image of the real guests, built once into .cache/ and again when its files have changed.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildKubernetesTools } from '../support/kubernetes-tools.ts';
import type { Image } from './qemu-guest.ts';

const SOURCE = join(import.meta.dirname, 'image');
const FOLDER = join(import.meta.dirname, '../../.cache/guest-image');

export const IMAGE: Image = {
  disk: join(FOLDER, 'disk.qcow2'),
  kernel: join(FOLDER, 'vmlinuz'),
  initrd: join(FOLDER, 'initrd.img'),
};

/** The test runner calls it before the first suite. */
export function setup(): void {
  const tools = buildKubernetesTools('kubeadm', 'kubelet');
  const stamp = join(FOLDER, 'source');
  const source = hashSource(tools);
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === source) return;
  process.stderr.write('building the image of the guests (minutes)…\n');
  mkdirSync(FOLDER, { recursive: true });
  execFileSync('bash', [join(SOURCE, 'build.sh'), FOLDER, tools], { stdio: ['ignore', 2, 2] });
  writeFileSync(stamp, source);
}

function hashSource(tools: string): string {
  const hash = createHash('sha256');
  for (const name of ['kubeadm', 'kubelet'])
    hash.update(readFileSync(join(tools, `${name}.source`)));
  for (const name of readdirSync(SOURCE, { recursive: true, encoding: 'utf8' }).sort()) {
    const path = join(SOURCE, name);
    if (statSync(path).isFile()) hash.update(`${name}\n`).update(readFileSync(path));
  }
  return hash.digest('hex');
}
