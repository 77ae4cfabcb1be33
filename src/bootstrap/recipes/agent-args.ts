// SPDX-License-Identifier: Apache-2.0
// The user's further arguments of an agent, as settings of its config file: there nothing has to be quoted, and
// they hold whoever wrote the unit.
import { accepted, type Parsed, refused } from '../../model/parsed.ts';

export type Setting = readonly [name: string, value: string | true];

/** What the recipe sets; an argument that sets it again would win or lose silently. */
const OURS = new Set(['server', 'token', 'token-file', 'node-name', 'config', 'with-node-id']);
const OURS_OF_KUBELET = /^(provider-id|node-labels|register-with-taints|hostname-override)(=|$)/;

/** Reads `--name=value`, `--name value` (one text or two) and `--name`. */
export function agentSettings(args: readonly string[]): Parsed<readonly Setting[]> {
  const words = args.flatMap(split);
  const settings: Setting[] = [];
  for (let index = 0; index < words.length; index += 1) {
    const name = /^--?([a-z][a-z0-9-]*)$/.exec(words[index] ?? '')?.[1];
    if (name === undefined) {
      return refused(`agent argument '${words[index]}' is not of the form --name=value`);
    }
    const next = words[index + 1];
    const isValue = next !== undefined && !/^--?[a-z]/.test(next);
    settings.push([name, isValue ? next : true]);
    if (isValue) index += 1;
  }
  const taken = settings.find(isOurs);
  return taken === undefined
    ? accepted(settings)
    : refused(`agent argument '--${taken[0]}' sets what the recipe sets`);
}

function split(argument: string): string[] {
  const at = argument.search(/[= ]/);
  if (!argument.startsWith('-') || at < 0) return [argument];
  return [argument.slice(0, at), argument.slice(at + 1).trim()];
}

function isOurs([name, value]: Setting): boolean {
  const text = name === 'kubelet-arg' && typeof value === 'string' ? value : name;
  return OURS.has(name) || OURS_OF_KUBELET.test(text.replace(/^--/, ''));
}
