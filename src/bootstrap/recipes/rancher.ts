// SPDX-License-Identifier: Apache-2.0
// k3s and RKE2: the program, a config file, and the token in a separate file. The agent needs a token at every
// start, also when it has its certificates: after the join a token without a secret takes its place.
import { formatLabels } from '../../model/labels.ts';
import { accepted, type Parsed, refused } from '../../model/parsed.ts';
import { quoteShell } from '../../model/quote-shell.ts';
import { formatTaint } from '../../model/taints.ts';
import { formatYaml } from '../format-yaml.ts';
import { type GuestFile, joinLines, secretFile, TOKEN_FILE, unitPath } from '../guest-file.ts';

import type { Registration } from '../registration.ts';
import { AGENT_TOKEN_SCRIPT, renderAgentTokenScript, renderTokenRemoval } from './agent-token.ts';
import { isUrl, probeUrl, serverProblem, tokenProblem } from './join-parameters.ts';
import type { JoinPlan, Recipe } from './join-plan.ts';
import {
  RANCHER_DISTRIBUTIONS,
  type RancherDistribution,
  type RancherJoin,
} from './rancher-distribution.ts';

/** An agent that cannot join retries for ever; the timeout makes the failure visible to the join unit. */
const START_TIMEOUT_SECONDS = 600;

export const rancherRecipe: Recipe<RancherJoin> = (join, node) => {
  const distribution = RANCHER_DISTRIBUTIONS[join.kind];
  const problem = rancherProblem(join, distribution);
  if (problem !== undefined) return refused(problem);
  const settings = parseAgentArgs(join.agentArgs);
  if (!settings.ok) return settings;
  const installed = planInstallation(join, distribution, node.architecture);
  const folder = `/etc/rancher/${distribution.name}`;
  const config = agentConfig(join, node.registration, settings.value);
  const plan: JoinPlan = {
    files: [
      { path: `${folder}/config.yaml`, content: formatYaml(config), mode: '0600' },
      ...registriesFile(folder, join.registries),
      ...installed.files,
      agentDropIn(distribution),
      {
        path: AGENT_TOKEN_SCRIPT,
        content: renderAgentTokenScript({
          server: join.server,
          caFile: serverCaFile(join.kind, settings.value),
        }),
        mode: '0700',
      },
      secretFile(TOKEN_FILE, `${join.token}\n`),
    ],
    secrets: [],
    packages: installed.packages,
    script: joinLines(
      ...installed.script.split('\n').slice(0, -1),
      `wait_for ${quoteShell(probeUrl(join.server))}`,
      'systemctl daemon-reload',
      `systemctl enable ${distribution.unit}.service`,
      `timeout ${START_TIMEOUT_SECONDS} systemctl start ${distribution.unit}.service`,
    ),
    afterJoin: renderTokenRemoval(),
    services: [distribution.unit],
  };
  return accepted(plan);
};

function rancherProblem(join: RancherJoin, distribution: RancherDistribution): string | undefined {
  const { version, sha256, downloadUrl } = join;
  if (!distribution.version.test(version))
    return `'${version}' is not a release of ${distribution.name}`;
  if (sha256 !== undefined && !/^[0-9a-fA-F]{64}$/.test(sha256)) {
    return 'the sha256 must be 64 hexadecimal digits';
  }
  if (downloadUrl !== undefined && !isUrl(downloadUrl)) {
    return `download URL '${downloadUrl}' is not a URL`;
  }
  return serverProblem(join.server) ?? tokenProblem(join.token);
}

function registriesFile(folder: string, content: string | undefined): GuestFile[] {
  // It may contain registry passwords.
  return content === undefined
    ? []
    : [{ path: `${folder}/registries.yaml`, content, mode: '0600' }];
}

function agentConfig(
  { server }: RancherJoin,
  registration: Registration,
  settings: readonly AgentSetting[],
): Readonly<Record<string, unknown>> {
  const labels = formatLabels(registration.kubeletLabels);
  const config = new Map<string, unknown>([
    ['server', server],
    ['token-file', TOKEN_FILE],
    ['node-name', registration.nodeName],
    ['node-label', labels.split(',')],
    ...(registration.taints.length > 0
      ? [['node-taint', registration.taints.map(formatTaint)] as const]
      : []),
    ['kubelet-arg', [`provider-id=${registration.providerId}`]],
  ]);
  for (const [name, value] of settings) {
    const before = config.get(name);
    config.set(name, before === undefined ? value : [before, value].flat());
  }
  return Object.fromEntries(config);
}

/** Where the agent stores the CA of the server that it joined. */
function serverCaFile(name: string, settings: readonly AgentSetting[]): string {
  const folder = settings.findLast(([key]) => key === 'data-dir' || key === 'd')?.[1];
  return `${folder ?? `/var/lib/rancher/${name}`}/agent/server-ca.crt`;
}

// The user's extra agent arguments, converted to settings of the config file. Settings need no quoting and
// apply whichever unit starts the agent.

type AgentSetting = readonly [name: string, value: string | true];

/** Set by the recipe. An argument that sets it again would silently win or lose. */
const RESERVED_ARGS = new Set([
  'server',
  's',
  'token',
  't',
  'token-file',
  'node-name',
  'config',
  'c',
  'with-node-id',
]);
/** With a log file the agent starts itself again and reports that it is up before it has joined. */
const LOG_ARGS = new Set(['log', 'l']);
const RESERVED_KUBELET_ARGS =
  /^(provider-id|node-labels|register-with-taints|hostname-override)(=|$)/;

/** Parses `--name=value`, `--name value` (one string or two) and `--name`. */
function parseAgentArgs(args: readonly string[]): Parsed<readonly AgentSetting[]> {
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
  if (taken !== undefined) {
    return refused(`agent argument '${withDashes(taken[0])}' is reserved: the recipe sets it`);
  }
  const log = settings.find(([name]) => LOG_ARGS.has(name));
  return log === undefined
    ? accepted(settings)
    : refused(
        `agent argument '${withDashes(log[0])}' makes the agent ready before it has joined: read its log by journalctl`,
      );
}

function withDashes(name: string): string {
  return name.length === 1 ? `-${name}` : `--${name}`;
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

// Installs the program of k3s or RKE2: a release file whose checksum is verified before it runs, the vendor's
// install script if configured, or nothing.

interface Installation {
  readonly script: string;
  readonly files: readonly GuestFile[];
  readonly packages: readonly string[];
}

const DOWNLOAD_PACKAGES = ['curl', 'ca-certificates'];

function planInstallation(
  join: RancherJoin,
  distribution: RancherDistribution,
  architecture: string,
): Installation {
  switch (join.install) {
    case 'none':
      return { script: '', files: [], packages: [] };
    case 'script':
      return {
        script: runOnce(scriptCommands(join, distribution)),
        files: [],
        packages: DOWNLOAD_PACKAGES,
      };
    case 'binary':
      return {
        script: runOnce(binaryCommands(join, distribution, architecture)),
        // The archive of RKE2 contains the vendor's unit; a unit of ours would hide its settings.
        files: distribution.hasUnit ? [] : [unitFile(distribution)],
        packages: DOWNLOAD_PACKAGES,
      };
  }
}

function unitFile(distribution: RancherDistribution): GuestFile {
  return {
    path: unitPath(`${distribution.unit}.service`),
    content: renderUnit(distribution),
    mode: '0644',
  };
}

/** Without `notify` a unit may count as started before it has read the token, which would then be removed too early. */
function agentDropIn({ unit }: RancherDistribution): GuestFile {
  return {
    path: `${unitPath(`${unit}.service`)}.d/10-pvescaler.conf`,
    content: joinLines('[Service]', 'Type=notify', `ExecStartPre=-${AGENT_TOKEN_SCRIPT}`),
    mode: '0644',
  };
}

/** A retried join does not download again. */
function runOnce(commands: readonly string[]): string {
  return joinLines(
    'if [ ! -e "$state/installed" ]; then',
    '  mkdir -p "$state/download"',
    '  cd "$state/download"',
    ...commands.map((command) => `  ${command}`),
    '  cd /',
    '  rm -rf "$state/download"',
    '  touch "$state/installed"',
    'fi',
  );
}

const FETCH = 'curl -fsSL --retry 5 --retry-delay 5 --connect-timeout 20 -o';

function binaryCommands(
  join: RancherJoin,
  distribution: RancherDistribution,
  architecture: string,
): readonly string[] {
  const asset = distribution.asset(architecture);
  // Some servers decode a plus in a path as a space.
  const release = `${withoutTrailingSlash(join.downloadUrl ?? distribution.releases)}/${encodeURIComponent(join.version)}`;
  return [
    `${FETCH} ${asset} ${quoteShell(`${release}/${asset}`)}`,
    ...(join.sha256 === undefined
      ? [
          `${FETCH} checksums ${quoteShell(`${release}/sha256sum-${architecture}.txt`)}`,
          `grep ${quoteShell(` ${asset}$`)} checksums > SHA256SUMS`,
        ]
      : [`echo ${quoteShell(`${join.sha256.toLowerCase()}  ${asset}`)} > SHA256SUMS`]),
    'sha256sum -c SHA256SUMS',
    distribution.installCommand(asset),
  ];
}

function scriptCommands(join: RancherJoin, distribution: RancherDistribution): readonly string[] {
  const settings = distribution.scriptSettings(join.version).map(quoteShell).join(' ');
  const argument = distribution.name === 'k3s' ? ' agent' : '';
  return [
    `${FETCH} install.sh ${quoteShell(join.downloadUrl ?? distribution.script)}`,
    `env ${settings} sh install.sh${argument}`,
  ];
}

function withoutTrailingSlash(url: string): string {
  return url.replace(/\/+$/, '');
}

function renderUnit({ name, program }: RancherDistribution): string {
  return joinLines(
    '[Unit]',
    `Description=Kubernetes node agent (${name})`,
    'Wants=network-online.target',
    'After=network-online.target',
    '',
    '[Service]',
    // The agent notifies systemd after the join, so "started" means joined.
    'Type=notify',
    'ExecStartPre=-/sbin/modprobe br_netfilter',
    'ExecStartPre=-/sbin/modprobe overlay',
    `ExecStart=${program} agent`,
    // Pods keep running when the agent restarts.
    'KillMode=process',
    'Delegate=yes',
    'LimitNOFILE=1048576',
    'LimitNPROC=infinity',
    'LimitCORE=infinity',
    'TasksMax=infinity',
    'TimeoutStartSec=0',
    'Restart=always',
    'RestartSec=5',
    '',
    '[Install]',
    'WantedBy=multi-user.target',
  );
}
