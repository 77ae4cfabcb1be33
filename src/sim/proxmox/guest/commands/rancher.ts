// SPDX-License-Identifier: Apache-2.0
// `k3s agent` and `rke2 agent`: two programs with one way of reading their settings.
import { parseYaml, recordOf, textsOf } from '../plain-values.ts';
import {
  type Call,
  failure,
  OK,
  type Options,
  type Outcome,
  readOptions,
} from '../shell/command.ts';
import { kubeletFlag, recordJoin } from './join.ts';

type Distribution = 'k3s' | 'rke2';
type Settings = Map<string, readonly string[]>;

const VALUED = [
  'c config s server t token token-file node-name node-label node-taint kubelet-arg node-ip',
  'node-external-ip data-dir d flannel-iface log v node-id',
].flatMap((line) => line.split(' '));

const ENVIRONMENT = {
  URL: 'server',
  TOKEN: 'token',
  TOKEN_FILE: 'token-file',
  NODE_NAME: 'node-name',
};
const SHORT: Readonly<Record<string, string>> = { s: 'server', t: 'token' };

export function rancherAgent(call: Call): Outcome {
  const distribution: Distribution = call.name === 'rke2' ? 'rke2' : 'k3s';
  const options = readOptions(call.args, VALUED);
  if (options.has('version', 'v')) return { code: 0, out: `${distribution} version simulated\n` };
  if (options.operands[0] !== 'agent') return OK;
  const files = configFiles(call, options, distribution);
  const settings = readSettings(call, { files, options, distribution });
  const all = (key: string) => settings.get(key) ?? [];
  const [server, token] = [all('server').at(-1), tokenOf(call, settings)];
  if (server === undefined || token === undefined) {
    const missing = server === undefined ? '--server' : '--token';
    return failure(1, `level=fatal msg="Error: ${missing} is required"`);
  }
  const kubeletArgs = all('kubelet-arg').map((arg) => arg.replace(/^--/, ''));
  return recordJoin(call, {
    distribution,
    server,
    token,
    nodeName: (all('node-name').at(-1) ?? call.system.hostname).toLowerCase(),
    labels: [...all('node-label'), ...kubeletFlag(kubeletArgs, 'node-labels')],
    taints: [...all('node-taint'), ...kubeletFlag(kubeletArgs, 'register-with-taints')],
    kubeletArgs,
    caCertHashes: [],
    source: files[0] ?? `${distribution} agent`,
  });
}

function tokenOf(call: Call, settings: Settings): string | undefined {
  const given = settings.get('token')?.at(-1);
  const file = settings.get('token-file')?.at(-1);
  return given ?? (file === undefined ? undefined : call.system.files.read(file)?.trim());
}

/** The main file and its drop-ins, as far as they exist. */
function configFiles(call: Call, options: Options, distribution: Distribution): string[] {
  const { files } = call.system;
  const named =
    options.value('config', 'c') ?? call.variables.get(variable(distribution, 'CONFIG_FILE'));
  const main = named ?? `/etc/rancher/${distribution}/config.yaml`;
  const isDropIn = (path: string) => path.startsWith(`${main}.d/`) && /\.ya?ml$/.test(path);
  return [main, ...files.paths().filter(isDropIn)].filter((path) => files.get(path) !== undefined);
}

interface Sources {
  readonly files: readonly string[];
  readonly options: Options;
  readonly distribution: Distribution;
}

/** Flags over environment over files; lists add up, as the distributions do it. */
function readSettings(call: Call, { files, options, distribution }: Sources): Settings {
  const settings: Settings = new Map();
  for (const path of files) addFile(settings, parseYaml(call.system.files.read(path) ?? '').value);
  for (const [name, key] of Object.entries(ENVIRONMENT)) {
    const value = call.variables.get(variable(distribution, name));
    if (value) settings.set(key, [value]);
  }
  for (const [flag, values] of options.values) {
    const key = SHORT[flag] ?? flag;
    settings.set(key, [...(settings.get(key) ?? []), ...values]);
  }
  return settings;
}

function variable(distribution: Distribution, name: string): string {
  return `${distribution.toUpperCase()}_${name}`;
}

/** `key: value` replaces what an earlier file said; `key+: value` adds to it. */
function addFile(settings: Settings, value: unknown): void {
  for (const [name, raw] of Object.entries(recordOf(value))) {
    const key = name.replace(/\+$/, '');
    const before = name.endsWith('+') ? (settings.get(key) ?? []) : [];
    settings.set(key, [...before, ...textsOf(raw)]);
  }
}
