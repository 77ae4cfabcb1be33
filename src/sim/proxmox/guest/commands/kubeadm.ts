// SPDX-License-Identifier: Apache-2.0
// `kubeadm join` from flags or a JoinConfiguration, with the preflight checks that an incomplete recipe fails.

import { KUBEADM_IDENTITY_PATHS } from '../kubelet/identity.ts';
import {
  type CommandCall,
  type CommandResult,
  failure,
  OK,
  type ParsedOptions,
  parseOptions,
} from '../shell/command.ts';
import type { GuestSystem } from '../system/system.ts';
import {
  asList,
  asRecord,
  asText,
  asTexts,
  isRecord,
  type PlainRecord,
  parseYaml,
  parseYamlDocuments,
} from '../untyped-values.ts';
import { joinNode, kubeletFlagValues, startJoinedKubelet } from './join.ts';

const OPTIONS_WITH_VALUE = [
  'config token discovery-token discovery-token-ca-cert-hash discovery-file tls-bootstrap-token node-name',
  'cri-socket ignore-preflight-errors v',
].flatMap((line) => line.split(' '));

const VERSION = 'v1.33.0';
/** `kubeadm join` writes the kubelet's flags here; the kubelet's unit reads them. */
const FLAGS_FILE = '/var/lib/kubelet/kubeadm-flags.env';

const RUNTIMES = ['containerd', 'crio', 'docker'];

export function kubeadm(call: CommandCall): CommandResult | Promise<CommandResult> {
  const options = parseOptions(call.args, OPTIONS_WITH_VALUE);
  if (options.operands[0] === 'version') return { code: 0, out: `${VERSION}\n` };
  if (options.operands[0] !== 'join') return OK;
  const problem = runPreflight(call.system, options.value('ignore-preflight-errors') ?? '');
  if (problem !== undefined) return failure(1, `error execution phase preflight: ${problem}`);
  const path = options.value('config');
  const text = path === undefined ? '' : call.system.files.read(call.path(path));
  if (text === undefined) return failure(1, `error: open ${path}: no such file or directory`);
  return runJoin(call, options, findJoinConfiguration(text));
}

function findJoinConfiguration(text: string): PlainRecord {
  return parseYamlDocuments(text).find((each) => each['kind'] === 'JoinConfiguration') ?? {};
}

async function runJoin(
  call: CommandCall,
  options: ParsedOptions,
  config: PlainRecord,
): Promise<CommandResult> {
  const { server, token, caCertHashes } = readDiscovery(call.system, options, config);
  if (server === undefined || token === undefined) {
    return failure(1, 'error: discovery: Invalid value: "": bootstrapToken or file must be set');
  }
  const registration = asRecord(config['nodeRegistration']);
  const name = asText(registration['name']) ?? options.value('node-name') ?? call.system.hostname;
  const kubeletArgs = [
    ...readExtraArgs(registration['kubeletExtraArgs']),
    ...readDefaultArgs(call.system),
  ];
  const taints = asList(registration['taints']).filter(isRecord).map(formatTaint);
  const node = {
    distribution: 'kubeadm' as const,
    nodeName: name.toLowerCase(),
    labels: kubeletFlagValues(kubeletArgs, 'node-labels'),
    taints: [...taints, ...kubeletFlagValues(kubeletArgs, 'register-with-taints')],
    kubeletArgs,
  };
  const source = options.value('config') ?? 'kubeadm join';
  const result = await joinNode(call, {
    attempt: { ...node, server, token, caCertHashes, source },
    version: VERSION,
    paths: KUBEADM_IDENTITY_PATHS,
  });
  if (result.code !== 0) return result;
  call.system.files.makeDirectory('/var/lib/kubelet');
  call.system.files.write(FLAGS_FILE, formatFlagsFile(node.nodeName, node.taints, kubeletArgs));
  call.system.activeUnits.add('kubelet');
  call.system.enabledUnits.add('kubelet');
  call.system.notifyChange();
  return result;
}

function formatFlagsFile(
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

/** Starts the kubelet at a later boot from the files that the join wrote. */
export async function startKubeletUnit(system: GuestSystem): Promise<void> {
  const kubeletArgs = readArguments(system, FLAGS_FILE, 'KUBELET_KUBEADM_ARGS');
  const [override] = kubeletFlagValues(kubeletArgs, 'hostname-override');
  await startJoinedKubelet(system, KUBEADM_IDENTITY_PATHS, {
    distribution: 'kubeadm',
    nodeName: (override ?? system.hostname).toLowerCase(),
    labels: kubeletFlagValues(kubeletArgs, 'node-labels'),
    taints: kubeletFlagValues(kubeletArgs, 'register-with-taints'),
    kubeletArgs,
    version: VERSION,
  });
}

interface DiscoverySettings {
  readonly server: string | undefined;
  readonly token: string | undefined;
  readonly caCertHashes: readonly string[];
}

function readDiscovery(
  system: GuestSystem,
  options: ParsedOptions,
  config: PlainRecord,
): DiscoverySettings {
  const discovery = asRecord(config['discovery']);
  const bootstrap = asRecord(discovery['bootstrapToken']);
  const file =
    asText(asRecord(discovery['file'])['kubeConfigPath']) ?? options.value('discovery-file');
  const server = asText(bootstrap['apiServerEndpoint']) ?? readKubeconfigServer(system, file);
  const token = asText(bootstrap['token']) ?? asText(discovery['tlsBootstrapToken']);
  return {
    server: server ?? options.operands[1],
    token: token ?? options.value('token', 'discovery-token', 'tls-bootstrap-token'),
    caCertHashes: [
      ...asTexts(bootstrap['caCertHashes']),
      ...options.all('discovery-token-ca-cert-hash'),
    ],
  };
}

function readKubeconfigServer(system: GuestSystem, path: string | undefined): string | undefined {
  if (path === undefined) return undefined;
  const kubeconfig = asRecord(parseYaml(system.files.read(path) ?? '').value);
  return asText(asRecord(asRecord(asList(kubeconfig['clusters'])[0])['cluster'])['server']);
}

/** v1beta3 uses a map, v1beta4 a list of name and value. */
function readExtraArgs(value: unknown): string[] {
  const pairs = Array.isArray(value)
    ? value
        .filter(isRecord)
        .map((arg): [string, unknown] => [asText(arg['name']) ?? '', arg['value']])
    : Object.entries(asRecord(value));
  return pairs.map(([name, arg]) => `${name}=${asText(arg) ?? ''}`);
}

function readDefaultArgs(system: GuestSystem): string[] {
  return readArguments(system, '/etc/default/kubelet', 'KUBELET_EXTRA_ARGS');
}

function readArguments(system: GuestSystem, path: string, variable: string): string[] {
  const text = system.files.read(path) ?? '';
  const value = new RegExp(`^\\s*${variable}=["']?(.*?)["']?\\s*$`, 'm').exec(text)?.[1] ?? '';
  const words = value.split(/\s+/).filter((arg) => arg !== '');
  return words.map((arg) => arg.replace(/^--/, ''));
}

function formatTaint(taint: PlainRecord): string {
  const value = asText(taint['value']) ?? '';
  const pair = `${asText(taint['key']) ?? ''}${value === '' ? '' : `=${value}`}`;
  return `${pair}:${asText(taint['effect']) ?? ''}`;
}

function runPreflight(system: GuestSystem, ignored: string): string | undefined {
  if (/\ball\b/i.test(ignored)) return undefined;
  if (system.isSwapOn && !/swap/i.test(ignored)) {
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
