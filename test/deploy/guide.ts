// SPDX-License-Identifier: Apache-2.0
// Reads commands from the guide, so that the tests run what users type.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../support/pvescaler.ts';

export const GUIDE = readFileSync(join(root, 'docs/guides/cluster-autoscaler.md'), 'utf8');

/** The text of all `sh` blocks under the heading. */
export function readScript(heading: string): string {
  const section = GUIDE.split(/^#+ /m).find((text) => text.startsWith(`${heading}\n`));
  if (section === undefined) throw new Error(`the guide has no heading "${heading}"`);
  return [...section.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, text = '']) => text).join('');
}

/** The commands of all `sh` blocks under the heading, each as a list of unquoted words. */
export function readCommands(heading: string): readonly (readonly string[])[] {
  return readScript(heading)
    .replaceAll('\\\n', ' ')
    .split('\n')
    .map((line) => [...line.matchAll(/"([^"]*)"|'([^']*)'|(#.*)|([^\s"'#]+)/g)])
    .map((words) => words.flatMap(([, a, b, , c]) => a ?? b ?? c ?? []))
    .filter((words) => words.length > 0);
}
