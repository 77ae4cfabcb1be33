// SPDX-License-Identifier: Apache-2.0
// kubectl and helm, built from their Go modules into .cache/; `KUBECTL` and `HELM` name programs to use instead.
import { join } from 'node:path';
import { buildGoProgram } from '../../support/go-program.ts';
import { root } from '../../support/pvescaler.ts';

/** For hooks that build a program. */
export const BUILD_TIMEOUT_MS = 900_000;

const E2E = join(import.meta.dirname, '..');
const log = (text: string) => void process.stderr.write(`${text}\n`);

/** The path of kubectl. */
export function buildKubectl(): string {
  const given = process.env['KUBECTL'];
  if (given !== undefined) return given;
  const program = join(root, '.cache/kubectl/kubectl');
  buildGoProgram({ source: join(E2E, 'kubectl'), program, linkerFlags: '-s -w', log });
  return program;
}

/** The path of helm. */
export function buildHelm(): string {
  const given = process.env['HELM'];
  if (given !== undefined) return given;
  const program = join(root, '.cache/helm/helm');
  const target = 'helm.sh/helm/v3/cmd/helm';
  buildGoProgram({ source: join(E2E, 'helm'), program, target, linkerFlags: '-s -w', log });
  return program;
}
