// SPDX-License-Identifier: Apache-2.0
// The user's extra agent arguments, converted to settings of the config file. Settings need no quoting and
// apply whichever unit starts the agent.
import { accepted, type Parsed, refused } from '../../model/parsed.ts';

export type AgentSetting = readonly [name: string, value: string | true];

/** Set by the recipe. An argument that sets it again would silently win or lose. */
const RESERVED_ARGS = new Set([
  'server',
  'token',
  'token-file',
  'node-name',
  'config',
  'with-node-id',
]);
const RESERVED_KUBELET_ARGS =
  /^(provider-id|node-labels|register-with-taints|hostname-override)(=|$)/;

/** Parses `--name=value`, `--name value` (one string or two) and `--name`. */
export function parseAgentArgs(args: readonly string[]): Parsed<readonly AgentSetting[]> {
  const words = args.flatMap(splitArgument);
  const settings: AgentSetting[] = [];
  for (let index = 0; index < words.length; index += 1) {
    const name = /^--?([a-z][a-z0-9-]*)$/.exec(words[index] ?? '')?.[1];
    if (name === undefined) {
      return refused(`agent argument '${words[index]}' must have the form --name=value`);
    }
    const next = words[index + 1];
    const isValue = next !== undefined && !/^--?[a-z]/.test(next);
    settings.push([name, isValue ? next : true]);
    if (isValue) index += 1;
  }
  const taken = settings.find(isReserved);
  return taken === undefined
    ? accepted(settings)
    : refused(`agent argument '--${taken[0]}' is reserved: the recipe sets it`);
}

function splitArgument(argument: string): string[] {
  const at = argument.search(/[= ]/);
  if (!argument.startsWith('-') || at < 0) return [argument];
  return [argument.slice(0, at), argument.slice(at + 1).trim()];
}

function isReserved([name, value]: AgentSetting): boolean {
  const text = name === 'kubelet-arg' && typeof value === 'string' ? value : name;
  return RESERVED_ARGS.has(name) || RESERVED_KUBELET_ARGS.test(text.replace(/^--/, ''));
}
