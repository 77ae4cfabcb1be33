// SPDX-License-Identifier: Apache-2.0
// k3s and RKE2: the program, a config file, and the token in a file of its own that the config names from a
// drop-in. Once the agent has its certificates it starts without a token, so token and drop-in go after the
// join; a `token-file` that pointed to nothing would keep the agent from starting.
import { formatLabels } from '../../model/labels.ts';
import { accepted, refused } from '../../model/parsed.ts';
import { formatTaint } from '../../model/taints.ts';
import { type GuestFile, secretFile } from '../guest-file.ts';
import { TOKEN_FILE } from '../paths.ts';
import type { Registration } from '../registration.ts';
import { lines, shellWord } from '../shell-text.ts';
import { yamlText } from '../yaml-text.ts';
import { agentSettings, type Setting } from './agent-args.ts';
import type { JoinPlan, Recipe } from './join-plan.ts';
import { FLAVOURS, type Flavour, type RancherJoin } from './rancher-flavour.ts';
import { installation } from './rancher-install.ts';
import { isUrl, probeOf, serverProblem } from './server-url.ts';
import { tokenProblem } from './tokens.ts';

/** An agent that cannot get in tries for ever; whoever waits for it should hear that it failed. */
const START_SECONDS = 600;

export const rancherRecipe: Recipe<RancherJoin> = (join, node) => {
  const flavour = FLAVOURS[join.kind];
  const problem = problemOf(join, flavour);
  if (problem !== undefined) return refused(problem);
  const settings = agentSettings(join.agentArgs);
  if (!settings.ok) return settings;
  const installed = installation(join, flavour, node.architecture);
  const folder = `/etc/rancher/${flavour.name}`;
  const config = configOf(join.server, node.registration, settings.value);
  const plan: JoinPlan = {
    files: [
      { path: `${folder}/config.yaml`, content: yamlText(config), mode: '0600' },
      ...registries(folder, join.registries),
      ...installed.files,
    ],
    secrets: [
      secretFile(TOKEN_FILE, `${join.token}\n`),
      secretFile(
        `${folder}/config.yaml.d/99-pvescaler-join.yaml`,
        yamlText({ 'token-file': TOKEN_FILE }),
      ),
    ],
    packages: installed.packages,
    script: lines(
      ...installed.script.split('\n').slice(0, -1),
      `wait_for ${shellWord(probeOf(join.server))}`,
      'systemctl daemon-reload',
      `systemctl enable ${flavour.unit}.service`,
      `timeout ${START_SECONDS} systemctl start ${flavour.unit}.service`,
    ),
    services: [flavour.unit],
  };
  return accepted(plan);
};

function problemOf(join: RancherJoin, flavour: Flavour): string | undefined {
  const { version, sha256, downloadUrl } = join;
  if (!flavour.version.test(version)) return `'${version}' is not a release of ${flavour.name}`;
  if (sha256 !== undefined && !/^[0-9a-fA-F]{64}$/.test(sha256)) {
    return 'the sha256 is not 64 hexadecimal digits';
  }
  if (downloadUrl !== undefined && !isUrl(downloadUrl)) {
    return `download URL '${downloadUrl}' is not a URL`;
  }
  return serverProblem(join.server) ?? tokenProblem(join.token);
}

function registries(folder: string, content: string | undefined): GuestFile[] {
  // It may hold passwords of registries.
  return content === undefined
    ? []
    : [{ path: `${folder}/registries.yaml`, content, mode: '0600' }];
}

function configOf(server: string, registration: Registration, settings: readonly Setting[]) {
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
