// SPDX-License-Identifier: Apache-2.0
// `k3s agent` and `rke2 agent`: two programs with one way of reading their settings.

import { rancherIdentity } from '../kubelet/identity.ts';
import { parseYaml, recordOf, textsOf } from '../plain-values.ts';
import {
  type Call,
  failure,
  OK,
  type Options,
  type Outcome,
  readOptions,
} from '../shell/command.ts';
import { urlOfStandIn } from './downloads.ts';
import { joinWith, kubeletFlag, rejoin } from './join.ts';

type Distribution = 'k3s' | 'rke2';
type Settings = Map<string, readonly string[]>;

const VALUED = [
  'c config s server t token token-file node-name node-label node-taint kubelet-arg node-ip',
  'node-external-ip data-dir d flannel-iface log v node-id',
].flatMap((line) => line.split(' '));

const DEFAULT_VERSIONS = { k3s: 'v1.33.0+k3s1', rke2: 'v1.33.0+rke2r1' } as const;

const ENVIRONMENT = {
  URL: 'server',
  TOKEN: 'token',
  TOKEN_FILE: 'token-file',
  NODE_NAME: 'node-name',
};
const SHORT: Readonly<Record<string, string>> = { s: 'server', t: 'token' };

export async function rancherAgent(call: Call): Promise<Outcome> {
  const distribution: Distribution = call.name === 'rke2' ? 'rke2' : 'k3s';
  const options = readOptions(call.args, VALUED);
  const version = versionOf(call, distribution);
  if (options.has('version', 'v')) return { code: 0, out: `${distribution} version ${version}\n` };
  if (options.operands[0] !== 'agent') return OK;
  const files = configFiles(call, options, distribution);
  const settings = readSettings(call, { files, options, distribution });
  const all = (key: string) => settings.get(key) ?? [];
  const [server, token] = [all('server').at(-1), tokenOf(call, settings)];
  if (server === undefined) return missing('--server');
  const kubeletArgs = all('kubelet-arg').map((arg) => arg.replace(/^--/, ''));
  const node = {
    distribution,
    nodeName: (all('node-name').at(-1) ?? call.system.hostname).toLowerCase(),
    labels: [...all('node-label'), ...kubeletFlag(kubeletArgs, 'node-labels')],
    taints: [...all('node-taint'), ...kubeletFlag(kubeletArgs, 'register-with-taints')],
    kubeletArgs,
  };
  const paths = rancherIdentity(distribution, all('data-dir').at(-1));
  if (token === undefined) {
    const hasJoined = await rejoin(call.system, paths, { ...node, version });
    return hasJoined ? OK : missing('--token');
  }
  const source = files[0] ?? `${distribution} agent`;
  return joinWith(call, {
    attempt: { ...node, server, token, caCertHashes: [], source },
    version,
    paths,
  });
}

function missing(flag: string): Outcome {
  return failure(1, `level=fatal msg="Error: ${flag} is required"`);
}

/** Told by where the program was downloaded from. */
function versionOf(call: Call, distribution: Distribution): string {
  const url = urlOfStandIn(call.system.files.read(`/usr/local/bin/${distribution}`) ?? '');
  const release = /\/(v\d+\.[^/]+)\//.exec(url)?.[1];
  return release === undefined ? DEFAULT_VERSIONS[distribution] : decodeURIComponent(release);
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
