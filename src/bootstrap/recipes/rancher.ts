// SPDX-License-Identifier: Apache-2.0
// k3s and RKE2: the program, a config file, and the token in a separate file that a config drop-in names. Once
// the agent has its certificates it starts without a token, so token and drop-in are removed after the join. A
// `token-file` setting that names a missing file would prevent the agent from starting.
import { formatLabels } from '../../model/labels.ts';
import { accepted, refused } from '../../model/parsed.ts';
import { formatTaint } from '../../model/taints.ts';
import { formatYaml } from '../format-yaml.ts';
import { type GuestFile, secretFile } from '../guest-file.ts';
import { TOKEN_FILE } from '../paths.ts';
import type { Registration } from '../registration.ts';
import { joinLines, quoteShell } from '../shell-text.ts';
import { type AgentSetting, parseAgentArgs } from './agent-args.ts';
import type { JoinPlan, Recipe } from './join-plan.ts';
import {
  RANCHER_DISTRIBUTIONS,
  type RancherDistribution,
  type RancherJoin,
} from './rancher-distribution.ts';
import { planInstallation } from './rancher-install.ts';
import { isUrl, probeUrl, serverProblem } from './server-url.ts';
import { tokenProblem } from './tokens.ts';

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
  const config = agentConfig(join.server, node.registration, settings.value);
  const plan: JoinPlan = {
    files: [
      { path: `${folder}/config.yaml`, content: formatYaml(config), mode: '0600' },
      ...registriesFile(folder, join.registries),
      ...installed.files,
    ],
    secrets: [
      secretFile(TOKEN_FILE, `${join.token}\n`),
      secretFile(
        `${folder}/config.yaml.d/99-pvescaler-join.yaml`,
        formatYaml({ 'token-file': TOKEN_FILE }),
      ),
    ],
    packages: installed.packages,
    script: joinLines(
      ...installed.script.split('\n').slice(0, -1),
      `wait_for ${quoteShell(probeUrl(join.server))}`,
      'systemctl daemon-reload',
      `systemctl enable ${distribution.unit}.service`,
      `timeout ${START_TIMEOUT_SECONDS} systemctl start ${distribution.unit}.service`,
    ),
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
  server: string,
  registration: Registration,
  settings: readonly AgentSetting[],
) {
  const labels = formatLabels(registration.kubeletLabels);
  const config = new Map<string, unknown>([
    ['server', server],
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
