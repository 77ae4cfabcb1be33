// SPDX-License-Identifier: Apache-2.0
// `k3s agent` and `rke2 agent`, which read their settings in the same way.

import { rancherIdentityPaths } from '../kubelet/identity.ts';
import {
  type CommandCall,
  type CommandResult,
  failure,
  OK,
  type ParsedOptions,
  parseOptions,
} from '../shell/command.ts';
import { asRecord, asTexts, parseYaml } from '../untyped-values.ts';
import { placeholderUrl } from './downloads.ts';
import { joinNode, kubeletFlagValues, startJoinedAgent } from './join.ts';

type Distribution = 'k3s' | 'rke2';
type AgentSettings = Map<string, readonly string[]>;

const OPTIONS_WITH_VALUE = [
  'c config s server t token token-file node-name node-label node-taint kubelet-arg node-ip',
  'node-external-ip data-dir d flannel-iface log v node-id',
].flatMap((line) => line.split(' '));

const DEFAULT_VERSIONS = { k3s: 'v1.33.0+k3s1', rke2: 'v1.33.0+rke2r1' } as const;

const ENVIRONMENT_SETTINGS = {
  URL: 'server',
  TOKEN: 'token',
  TOKEN_FILE: 'token-file',
  NODE_NAME: 'node-name',
};
const SHORT_FLAGS: Readonly<Record<string, string>> = { s: 'server', t: 'token' };

export async function rancherAgent(call: CommandCall): Promise<CommandResult> {
  const distribution: Distribution = call.name === 'rke2' ? 'rke2' : 'k3s';
  const options = parseOptions(call.args, OPTIONS_WITH_VALUE);
  const version = readVersion(call, distribution);
  if (options.has('version', 'v')) return { code: 0, out: `${distribution} version ${version}\n` };
  if (options.operands[0] !== 'agent') return OK;
  const files = findConfigFiles(call, options, distribution);
  const settings = readSettings(call, { files, options, distribution });
  const all = (key: string) => settings.get(key) ?? [];
  const [server, token] = [all('server').at(-1), readToken(call, settings)];
  if (server === undefined) return missingFlag('--server');
  const kubeletArgs = all('kubelet-arg').map((arg) => arg.replace(/^--/, ''));
  const node = {
    distribution,
    nodeName: (all('node-name').at(-1) ?? call.system.hostname).toLowerCase(),
    labels: [...all('node-label'), ...kubeletFlagValues(kubeletArgs, 'node-labels')],
    taints: [...all('node-taint'), ...kubeletFlagValues(kubeletArgs, 'register-with-taints')],
    kubeletArgs,
  };
  const paths = rancherIdentityPaths(distribution, all('data-dir').at(-1));
  // The agent needs a token at each start, also when it has certificates.
  if (!token) return failure(1, 'level=error msg="token must not be empty"');
  const source = files[0] ?? `${distribution} agent`;
  const join = { attempt: { ...node, server, token, caCertHashes: [], source }, version, paths };
  return (await startJoinedAgent(call, join)) ?? joinNode(call, join);
}

function missingFlag(flag: string): CommandResult {
  return failure(1, `level=fatal msg="Error: ${flag} is required"`);
}

/** The version in the download URL of the program, or the default. */
function readVersion(call: CommandCall, distribution: Distribution): string {
  const url = placeholderUrl(call.system.files.read(`/usr/local/bin/${distribution}`) ?? '');
  const release = /\/(v\d+\.[^/]+)\//.exec(url)?.[1];
  return release === undefined ? DEFAULT_VERSIONS[distribution] : decodeURIComponent(release);
}

function readToken(call: CommandCall, settings: AgentSettings): string | undefined {
  const given = settings.get('token')?.at(-1);
  const file = settings.get('token-file')?.at(-1);
  return given ?? (file === undefined ? undefined : call.system.files.read(file)?.trim());
}

/** The existing files among the main config file and its drop-ins. */
function findConfigFiles(
  call: CommandCall,
  options: ParsedOptions,
  distribution: Distribution,
): string[] {
  const { files } = call.system;
  const named =
    options.value('config', 'c') ??
    call.variables.get(environmentVariable(distribution, 'CONFIG_FILE'));
  const main = named ?? `/etc/rancher/${distribution}/config.yaml`;
  const isDropIn = (path: string) => path.startsWith(`${main}.d/`) && /\.ya?ml$/.test(path);
  return [main, ...files.paths().filter(isDropIn)].filter((path) => files.get(path) !== undefined);
}

interface SettingSources {
  readonly files: readonly string[];
  readonly options: ParsedOptions;
  readonly distribution: Distribution;
}

/** Environment overrides files; flags are appended to both, and readers of single values take the last one. */
function readSettings(
  call: CommandCall,
  { files, options, distribution }: SettingSources,
): AgentSettings {
  const settings: AgentSettings = new Map();
  for (const path of files)
    addFileSettings(settings, parseYaml(call.system.files.read(path) ?? '').value);
  for (const [name, key] of Object.entries(ENVIRONMENT_SETTINGS)) {
    const value = call.variables.get(environmentVariable(distribution, name));
    if (value) settings.set(key, [value]);
  }
  for (const [flag, values] of options.values) {
    const key = SHORT_FLAGS[flag] ?? flag;
    settings.set(key, [...(settings.get(key) ?? []), ...values]);
  }
  return settings;
}

function environmentVariable(distribution: Distribution, name: string): string {
  return `${distribution.toUpperCase()}_${name}`;
}

/** `key: value` replaces the value of an earlier file; `key+: value` appends to it. */
function addFileSettings(settings: AgentSettings, value: unknown): void {
  for (const [name, raw] of Object.entries(asRecord(value))) {
    const key = name.replace(/\+$/, '');
    const before = name.endsWith('+') ? (settings.get(key) ?? []) : [];
    settings.set(key, [...before, ...asTexts(raw)]);
  }
}
