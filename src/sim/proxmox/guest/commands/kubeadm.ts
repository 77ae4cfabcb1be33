// SPDX-License-Identifier: Apache-2.0
// `kubeadm join`, from flags or from a JoinConfiguration, behind the checks that a forgotten line of a recipe
// runs into.
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
import { kubeletFlag, recordJoin } from './join.ts';

const VALUED = [
  'config token discovery-token discovery-token-ca-cert-hash discovery-file tls-bootstrap-token node-name',
  'cri-socket ignore-preflight-errors v',
].flatMap((line) => line.split(' '));

const RUNTIMES = ['containerd', 'crio', 'docker'];

export function kubeadm(call: Call): Outcome {
  const options = readOptions(call.args, VALUED);
  if (options.operands[0] === 'version') return { code: 0, out: 'v1.33.0\n' };
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

function join(call: Call, options: Options, config: PlainRecord): Outcome {
  const { server, token, caCertHashes } = discoveryOf(call.system, options, config);
  if (server === undefined || token === undefined) {
    return failure(1, 'error: discovery: Invalid value: "": bootstrapToken or file must be set');
  }
  const registration = recordOf(config['nodeRegistration']);
  const name = textOf(registration['name']) ?? options.value('node-name') ?? call.system.hostname;
  const kubeletArgs = [...extraArgs(registration['kubeletExtraArgs']), ...defaultArgs(call.system)];
  const taints = listOf(registration['taints']).filter(isRecord).map(taintText);
  call.system.activeUnits.add('kubelet');
  call.system.enabledUnits.add('kubelet');
  return recordJoin(call, {
    distribution: 'kubeadm',
    server,
    token,
    nodeName: name.toLowerCase(),
    labels: kubeletFlag(kubeletArgs, 'node-labels'),
    taints: [...taints, ...kubeletFlag(kubeletArgs, 'register-with-taints')],
    kubeletArgs,
    caCertHashes,
    source: options.value('config') ?? 'kubeadm join',
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
  const text = system.files.read('/etc/default/kubelet') ?? '';
  const value = /^\s*KUBELET_EXTRA_ARGS=["']?(.*?)["']?\s*$/m.exec(text)?.[1] ?? '';
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
