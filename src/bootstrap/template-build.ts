// SPDX-License-Identifier: Apache-2.0
// The first and only boot of a template: installs what the template is to contain, removes everything that is particular
// to this VM, and reports. The VM is shut down from outside once the report says `done`.

import { quoteShell } from '../model/quote-shell.ts';
import { type GuestFile, joinLines, STATE_DIRECTORY } from './guest-file.ts';

export interface AptSource {
  /** Name of its files in /etc/apt. */
  readonly name: string;
  /** Line of sources.list without options: `https://host/path suite component`. */
  readonly source: string;
  /** ASCII-armored key, or the URL of one. */
  readonly key: { readonly text: string } | { readonly url: string };
}

export interface TemplateBuild {
  readonly packages: readonly string[];
  readonly sources: readonly AptSource[];
  /** Shell lines, run as root after the packages were installed. */
  readonly commands: readonly string[];
  /** Release of kubelet and kubeadm, `1.34.2`. */
  readonly kubeadm: string | undefined;
}

export const TEMPLATE_SCRIPT = '/usr/local/sbin/pvescaler-template';
/** In memory only: it is not part of the template. `<percent> <what>`, `done`, or `failed <what>`. */
export const TEMPLATE_REPORT = '/run/pvescaler-template';

/** How to read the report through the guest agent. */
export const READ_REPORT: readonly string[] = ['cat', TEMPLATE_REPORT];

export type TemplateReport =
  | { readonly state: 'building'; readonly percent: number; readonly step: string }
  | { readonly state: 'done' }
  | { readonly state: 'failed'; readonly step: string };

export function parseTemplateReport(text: string): TemplateReport | undefined {
  const [line = ''] = text.trim().split('\n');
  const [, word = '', rest = ''] = /^(\S+)(?: (.*))?$/.exec(line) ?? [];
  if (word === 'done') return { state: 'done' };
  if (word === 'failed') return { state: 'failed', step: rest };
  return /^\d{1,2}$/.test(word)
    ? { state: 'building', percent: Number(word), step: rest }
    : undefined;
}

interface Step {
  readonly name: string;
  readonly lines: readonly string[];
}

const KEYRINGS = '/etc/apt/keyrings';

/** Files of a template build; the script is last. */
export function templateFiles(build: TemplateBuild): readonly GuestFile[] {
  const all = withPresets(build);
  const keys = all.sources.flatMap(({ name, key }) =>
    'text' in key ? [{ path: keyPath(name), content: `${key.text.trim()}\n`, mode: '0644' }] : [],
  );
  return [...keys, ...(build.kubeadm === undefined ? [] : kubernetesFiles()), renderScript(all)];
}

/** containerd, kubelet and kubeadm as `kubeadm join` expects them. */
function withPresets(build: TemplateBuild): TemplateBuild {
  const { kubeadm } = build;
  if (kubeadm === undefined) return build;
  const [major = '1', minor = ''] = kubeadm.split('.');
  const url = `https://pkgs.k8s.io/core:/stable:/v${major}.${minor}/deb/`;
  return {
    ...build,
    sources: [
      ...build.sources,
      { name: 'kubernetes', source: `${url} /`, key: { url: `${url}Release.key` } },
    ],
    packages: [...build.packages, 'containerd', `kubelet=${kubeadm}-*`, `kubeadm=${kubeadm}-*`],
    commands: [
      'apt-mark hold kubelet kubeadm',
      'systemctl enable containerd.service kubelet.service',
      ...build.commands,
    ],
  };
}

function kubernetesFiles(): readonly GuestFile[] {
  return [
    {
      path: '/etc/containerd/config.toml',
      content: joinLines(
        'version = 2',
        '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]',
        '  runtime_type = "io.containerd.runc.v2"',
        '  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]',
        '    SystemdCgroup = true',
      ),
      mode: '0644',
    },
  ];
}

function stepsOf({ sources, packages, commands }: TemplateBuild): readonly Step[] {
  const install =
    'DEBIAN_FRONTEND=noninteractive apt-get -o Dpkg::Options::=--force-confold install -y';
  return [
    { name: 'adding package sources', lines: sources.flatMap(addSource) },
    { name: 'reading package lists', lines: ['apt-get update'] },
    { name: 'installing packages', lines: [`${install} ${packages.map(quoteShell).join(' ')}`] },
    {
      name: 'starting the guest agent',
      lines: ['systemctl start --no-block qemu-guest-agent.service'],
    },
    { name: 'running commands', lines: commands },
    { name: 'cleaning', lines: CLEAN },
  ];
}

function addSource({ name, source, key }: AptSource): readonly string[] {
  const line = `deb [signed-by=${keyPath(name)}] ${source}`;
  return [
    `mkdir -p ${KEYRINGS}`,
    ...('url' in key ? [`curl -fsSL ${quoteShell(key.url)} -o ${keyPath(name)}`] : []),
    `echo ${quoteShell(line)} > /etc/apt/sources.list.d/${name}.list`,
  ];
}

function keyPath(name: string): string {
  return `${KEYRINGS}/${name}.asc`;
}

/** Each clone gets its own identity, host keys and network from its own seed. */
const CLEAN: readonly string[] = [
  'apt-get clean',
  `rm -rf ${STATE_DIRECTORY} ${TEMPLATE_SCRIPT}`,
  'rm -f /etc/ssh/ssh_host_* /etc/netplan/50-cloud-init.yaml /var/lib/dbus/machine-id',
  'cloud-init clean --logs --seed',
  'truncate -s 0 /etc/machine-id',
  'sync',
];

/** Stops at the first command that fails. Its name is reported; its output is in the log of cloud-init. */
function renderScript(build: TemplateBuild): GuestFile {
  const steps = stepsOf(build).filter(({ lines }) => lines.length > 0);
  const content = joinLines(
    '#!/bin/sh',
    '# Builds this template, once.',
    'set -eu',
    'step=starting',
    `report() { echo "$1" > ${TEMPLATE_REPORT}; }`,
    // An agent that is there already tells of the failure; without one the build ends by its timeout.
    'trap \'if [ "$step" != done ]; then systemctl start --no-block qemu-guest-agent.service || true; report "failed $step"; fi\' EXIT',
    ...steps.flatMap(({ name, lines }, at) => [
      `step=${quoteShell(name)}`,
      `report "${Math.round((100 * at) / steps.length)} $step"`,
      ...lines,
    ]),
    'step=done',
    'report done',
  );
  return { path: TEMPLATE_SCRIPT, content, mode: '0700' };
}
