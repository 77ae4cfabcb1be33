// SPDX-License-Identifier: Apache-2.0
// `kubeadm join`, from flags or from a JoinConfiguration, behind the checks that a forgotten line of a recipe
// runs into.

import { KUBEADM_IDENTITY } from '../kubelet/identity.ts';
import {
  isRecord,
  listOf,
  type PlainRecord,
  parseYaml,
  parseYamlDocuments,
  recordOf,
  textOf,
  textsOf,
} from '../plain-values.ts';
import {
  type Call,
  failure,
  OK,
  type Options,
  type Outcome,
  readOptions,
} from '../shell/command.ts';
import type { GuestSystem } from '../system/system.ts';
import { joinWith, kubeletFlag, rejoin } from './join.ts';

const VALUED = [
  'config token discovery-token discovery-token-ca-cert-hash discovery-file tls-bootstrap-token node-name',
  'cri-socket ignore-preflight-errors v',
].flatMap((line) => line.split(' '));

const VERSION = 'v1.33.0';
/** What `kubeadm join` leaves for the kubelet's unit. */
const FLAGS_FILE = '/var/lib/kubelet/kubeadm-flags.env';

const RUNTIMES = ['containerd', 'crio', 'docker'];

export function kubeadm(call: Call): Outcome | Promise<Outcome> {
  const options = readOptions(call.args, VALUED);
  if (options.operands[0] === 'version') return { code: 0, out: `${VERSION}\n` };
  if (options.operands[0] !== 'join') return OK;
  const problem = preflight(call.system, options.value('ignore-preflight-errors') ?? '');
  if (problem !== undefined) return failure(1, `error execution phase preflight: ${problem}`);
  const path = options.value('config');
  const text = path === undefined ? '' : call.system.files.read(call.path(path));
  if (text === undefined) return failure(1, `error: open ${path}: no such file or directory`);
  return join(call, options, joinConfiguration(text));
}

function joinConfiguration(text: string): PlainRecord {
  return parseYamlDocuments(text).find((each) => each['kind'] === 'JoinConfiguration') ?? {};
}

async function join(call: Call, options: Options, config: PlainRecord): Promise<Outcome> {
  const { server, token, caCertHashes } = discoveryOf(call.system, options, config);
  if (server === undefined || token === undefined) {
    return failure(1, 'error: discovery: Invalid value: "": bootstrapToken or file must be set');
  }
  const registration = recordOf(config['nodeRegistration']);
  const name = textOf(registration['name']) ?? options.value('node-name') ?? call.system.hostname;
  const kubeletArgs = [...extraArgs(registration['kubeletExtraArgs']), ...defaultArgs(call.system)];
  const taints = listOf(registration['taints']).filter(isRecord).map(taintText);
  const node = {
    distribution: 'kubeadm' as const,
    nodeName: name.toLowerCase(),
    labels: kubeletFlag(kubeletArgs, 'node-labels'),
    taints: [...taints, ...kubeletFlag(kubeletArgs, 'register-with-taints')],
    kubeletArgs,
  };
  const source = options.value('config') ?? 'kubeadm join';
  const outcome = await joinWith(call, {
    attempt: { ...node, server, token, caCertHashes, source },
    version: VERSION,
    paths: KUBEADM_IDENTITY,
  });
  if (outcome.code !== 0) return outcome;
  call.system.files.makeDirectory('/var/lib/kubelet');
  call.system.files.write(FLAGS_FILE, flagsText(node.nodeName, node.taints, kubeletArgs));
  call.system.activeUnits.add('kubelet');
  call.system.enabledUnits.add('kubelet');
  call.system.changed();
  return outcome;
}

function flagsText(
  nodeName: string,
  taints: readonly string[],
  kubeletArgs: readonly string[],
): string {
  const own = kubeletArgs.filter((arg) => !arg.startsWith('register-with-taints='));
  const words = [
    `hostname-override=${nodeName}`,
    ...own,
    ...(taints.length > 0 ? [`register-with-taints=${taints.join(',')}`] : []),
  ];
  return `KUBELET_KUBEADM_ARGS="${words.map((word) => `--${word}`).join(' ')}"\n`;
}

/** The kubelet's unit at a later boot: what the join left on the disk is all it has. */
export async function startKubeletUnit(system: GuestSystem): Promise<void> {
  const kubeletArgs = argumentsIn(system, FLAGS_FILE, 'KUBELET_KUBEADM_ARGS');
  const [override] = kubeletFlag(kubeletArgs, 'hostname-override');
  await rejoin(system, KUBEADM_IDENTITY, {
    distribution: 'kubeadm',
    nodeName: (override ?? system.hostname).toLowerCase(),
    labels: kubeletFlag(kubeletArgs, 'node-labels'),
    taints: kubeletFlag(kubeletArgs, 'register-with-taints'),
    kubeletArgs,
    version: VERSION,
  });
}

interface Discovery {
  readonly server: string | undefined;
  readonly token: string | undefined;
  readonly caCertHashes: readonly string[];
}

function discoveryOf(system: GuestSystem, options: Options, config: PlainRecord): Discovery {
  const discovery = recordOf(config['discovery']);
  const bootstrap = recordOf(discovery['bootstrapToken']);
  const file =
    textOf(recordOf(discovery['file'])['kubeConfigPath']) ?? options.value('discovery-file');
  const server = textOf(bootstrap['apiServerEndpoint']) ?? serverOfKubeconfig(system, file);
  const token = textOf(bootstrap['token']) ?? textOf(discovery['tlsBootstrapToken']);
  return {
    server: server ?? options.operands[1],
    token: token ?? options.value('token', 'discovery-token', 'tls-bootstrap-token'),
    caCertHashes: [
      ...textsOf(bootstrap['caCertHashes']),
      ...options.all('discovery-token-ca-cert-hash'),
    ],
  };
}

function serverOfKubeconfig(system: GuestSystem, path: string | undefined): string | undefined {
  if (path === undefined) return undefined;
  const kubeconfig = recordOf(parseYaml(system.files.read(path) ?? '').value);
  return textOf(recordOf(recordOf(listOf(kubeconfig['clusters'])[0])['cluster'])['server']);
}

/** v1beta3 has a map, v1beta4 a list of name and value. */
function extraArgs(value: unknown): string[] {
  const pairs = Array.isArray(value)
    ? value
        .filter(isRecord)
        .map((arg): [string, unknown] => [textOf(arg['name']) ?? '', arg['value']])
    : Object.entries(recordOf(value));
  return pairs.map(([name, arg]) => `${name}=${textOf(arg) ?? ''}`);
}

function defaultArgs(system: GuestSystem): string[] {
  return argumentsIn(system, '/etc/default/kubelet', 'KUBELET_EXTRA_ARGS');
}

function argumentsIn(system: GuestSystem, path: string, variable: string): string[] {
  const text = system.files.read(path) ?? '';
  const value = new RegExp(`^\\s*${variable}=["']?(.*?)["']?\\s*$`, 'm').exec(text)?.[1] ?? '';
  const words = value.split(/\s+/).filter((arg) => arg !== '');
  return words.map((arg) => arg.replace(/^--/, ''));
}

function taintText(taint: PlainRecord): string {
  const value = textOf(taint['value']) ?? '';
  const pair = `${textOf(taint['key']) ?? ''}${value === '' ? '' : `=${value}`}`;
  return `${pair}:${textOf(taint['effect']) ?? ''}`;
}

function preflight(system: GuestSystem, ignored: string): string | undefined {
  if (/\ball\b/i.test(ignored)) return undefined;
  if (system.swapOn && !/swap/i.test(ignored)) {
    return '[ERROR Swap]: running with swap on is not supported';
  }
  const written = system.files.read('/proc/sys/net/ipv4/ip_forward')?.trim();
  if ((written ?? system.sysctl.get('net.ipv4.ip_forward')) !== '1') {
    return '[ERROR FileContent--proc-sys-net-ipv4-ip_forward]: contents are not set to 1';
  }
  if (!RUNTIMES.some((unit) => system.activeUnits.has(unit))) {
    return '[ERROR CRI]: container runtime is not running';
  }
  return undefined;
}
