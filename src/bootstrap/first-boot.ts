// SPDX-License-Identifier: Apache-2.0
// Which files and packages a machine gets, and how: by user-data, or by the guest agent after the boot.
import { accepted, type Parsed, refused } from '../model/parsed.ts';
import { duplicatePathProblem, toGuestFile } from './check-seed-input.ts';
import {
  FIRST_BOOT_SCRIPT,
  type GuestFile,
  JOIN_SCRIPT,
  JOIN_UNIT,
  joinLines,
  PROXY_FILE,
  STATE_DIRECTORY,
  unitPath,
} from './guest-file.ts';
import { renderProxyFiles } from './proxy.ts';
import { customRecipe } from './recipes/custom.ts';
import { hostnameOf } from './recipes/join-parameters.ts';
import type { JoiningNode, JoinPlan, Recipe } from './recipes/join-plan.ts';
import { kubeadmRecipe } from './recipes/kubeadm.ts';
import { rancherRecipe } from './recipes/rancher.ts';
import type { Registration } from './registration.ts';
import type { JoinInput, JoinKind, JoinVia, SeedInput } from './seed-input.ts';
import { TEMPLATE_SCRIPT, type TemplateBuild, templateFiles } from './template-build.ts';

export interface FirstBoot {
  readonly files: readonly GuestFile[];
  readonly filesByAgent: readonly GuestFile[];
  readonly packages: readonly string[];
  /** The script that cloud-init runs last. */
  readonly script: string;
}

export function planFirstBoot(input: SeedInput, registration: Registration): Parsed<FirstBoot> {
  if (input.template !== undefined) return planTemplateBuild(input, input.template);
  const plan = planJoinOf(input, registration);
  if (!plan.ok) return plan;
  const own = joinFilesOf(plan.value, input.join);
  const joinsItself = joinsVia(input.join, 'cloud-init');
  const early = [
    ...input.join.files.map(toGuestFile),
    ...proxyFilesOf(input.join, plan.value),
    ...(joinsItself ? own : []),
    renderFirstBootFile(joinsItself),
  ];
  const late = joinsItself ? [] : own;
  const duplicate = duplicatePathProblem([...early, ...late]);
  if (duplicate !== undefined) return refused(duplicate);
  const base = input.preinstalled ? [] : ['qemu-guest-agent', ...(plan.value?.packages ?? [])];
  return accepted({
    files: early,
    filesByAgent: late,
    packages: [...new Set([...base, ...input.join.packages])],
    script: FIRST_BOOT_SCRIPT,
  });
}

/** The script installs the packages itself, so that it can report what failed. */
function planTemplateBuild({ join }: SeedInput, template: TemplateBuild): Parsed<FirstBoot> {
  const files = [...join.files.map(toGuestFile), ...templateFiles(template)];
  const duplicate = duplicatePathProblem(files);
  if (duplicate !== undefined) return refused(duplicate);
  return accepted({ files, filesByAgent: [], packages: [], script: TEMPLATE_SCRIPT });
}

function planJoinOf(input: SeedInput, registration: Registration): Parsed<JoinPlan | undefined> {
  const { join, machine, pool } = input;
  if (join.kind === 'none') return accepted(undefined);
  return planJoin(join, { machine, architecture: pool.architecture, registration });
}

function joinsVia(join: JoinInput, via: 'cloud-init' | 'agent'): boolean {
  return join.kind !== 'none' && join.via === via;
}

function joinFilesOf(plan: JoinPlan | undefined, join: JoinInput): readonly GuestFile[] {
  if (plan === undefined || join.kind === 'none') return [];
  return [...plan.files, ...plan.secrets, ...renderJoinFiles(plan, join.via)];
}

function proxyFilesOf(join: JoinInput, plan: JoinPlan | undefined): readonly GuestFile[] {
  if (join.proxy === undefined) return [];
  const direct = 'server' in join ? [hostnameOf(join.server)] : [];
  return renderProxyFiles({ proxy: join.proxy, direct, services: plan?.services ?? [] });
}

// Performs a join plan inside the guest: a systemd unit that logs to the journal, and its script. The unit
// fails visibly and is restarted until the join is done; then it removes the secrets and disables itself. Needs
// systemd 244, the first version that restarts oneshot units.

/** cloud-init stores its input, including the secret, in these files. */
const SECRET_COPIES = [
  '/var/lib/cloud/instances/*/user-data.txt*',
  '/var/lib/cloud/instances/*/cloud-config.txt',
  '/var/lib/cloud/instances/*/obj.pkl',
  '/run/cloud-init/instance-data-sensitive.json',
  '/run/cloud-init/combined-cloud-config.json',
];

function renderJoinFiles(plan: JoinPlan, via: JoinVia): GuestFile[] {
  return [
    { path: JOIN_SCRIPT, content: renderJoinScript(plan, via), mode: '0700' },
    { path: unitPath(JOIN_UNIT), content: renderJoinUnit(), mode: '0644' },
  ];
}

function renderJoinUnit(): string {
  return joinLines(
    '[Unit]',
    'Description=Join this machine to its Kubernetes cluster',
    'Wants=network-online.target',
    'After=network-online.target',
    'StartLimitIntervalSec=0',
    '',
    '[Service]',
    'Type=oneshot',
    `EnvironmentFile=-${PROXY_FILE}`,
    `ExecStart=${JOIN_SCRIPT}`,
    'TimeoutStartSec=infinity',
    'Restart=on-failure',
    'RestartSec=15',
    '',
    '[Install]',
    'WantedBy=multi-user.target',
  );
}

function renderJoinScript(plan: JoinPlan, via: JoinVia): string {
  const removed = [
    ...plan.secrets.map(({ path }) => path),
    ...(via === 'cloud-init' ? SECRET_COPIES : []),
  ];
  return joinLines(
    '#!/bin/sh',
    '# Joins this machine to its cluster, once.',
    'set -eu',
    `state=${STATE_DIRECTORY}`,
    'mkdir -p "$state"',
    '',
    'fail() {',
    '  echo "$*" >&2',
    '  exit 1',
    '}',
    '',
    ...WAIT_FOR,
    '',
    'finish() {',
    '  touch "$state/joined"',
    ...indented(plan.afterJoin),
    ...removed.map((path) => `  rm -f ${path}`),
    `  systemctl disable ${JOIN_UNIT}`,
    '}',
    '',
    // After a crash between the join and the end of `finish` only the rest is done.
    'if [ -e "$state/joined" ]; then',
    '  finish',
    '  exit 0',
    'fi',
    '',
    ...linesOf(plan.script),
    'finish',
    'echo "joined"',
  );
}

function linesOf(text: string): string[] {
  return text.split('\n').slice(0, -1);
}

function indented(text: string): string[] {
  return linesOf(text).map((line) => `  ${line}`);
}

/** The join verifies the server's certificate. This only waits for a response, at most ten minutes. */
const WAIT_FOR = [
  'wait_for() {',
  '  command -v curl >/dev/null || return 0',
  '  tries=0',
  '  until curl -ksS -o /dev/null --connect-timeout 5 --max-time 10 "$1"; do',
  '    tries=$((tries + 1))',
  '    if [ "$tries" -ge 60 ]; then fail "$1 does not answer"; fi',
  '    echo "$1 does not answer yet; trying again in 10 s"',
  '    sleep 10',
  '  done',
  '}',
];

/**
 * The last command of the first boot. A failed join makes cloud-init report a failure. cloud-init is disabled
 * before the join: everything that a later attempt needs is on the disk, and the seed will be removed. After a
 * power failure during the join, cloud-init would run beside the unit that removes its files.
 */
function renderFirstBootFile(joins: boolean): GuestFile {
  const content = joinLines(
    '#!/bin/sh',
    '# Ends the first boot of this machine.',
    'set -eu',
    'status=0',
    'systemctl daemon-reload',
    // Does not wait: without its virtio port the guest agent would never start.
    'systemctl start --no-block qemu-guest-agent.service || echo "no guest agent" >&2',
    ...(joins ? [`systemctl enable ${JOIN_UNIT}`] : []),
    'touch /etc/cloud/cloud-init.disabled',
    'sync',
    ...(joins ? [`systemctl start ${JOIN_UNIT} || status=$?`] : []),
    'exit "$status"',
  );
  return { path: FIRST_BOOT_SCRIPT, content, mode: '0700' };
}

type JoinOf<Kind> = Extract<JoinInput, { readonly kind: Kind }>;
type Recipes = { readonly [Kind in JoinKind]: Recipe<JoinOf<Kind>> };

const RECIPES: Recipes = {
  k3s: rancherRecipe,
  rke2: rancherRecipe,
  kubeadm: kubeadmRecipe,
  custom: customRecipe,
};

export function recipeFor<Kind extends JoinKind>(kind: Kind): Recipes[Kind] {
  return RECIPES[kind];
}

function planJoin(
  join: Exclude<JoinInput, { readonly kind: 'none' }>,
  node: JoiningNode,
): Parsed<JoinPlan> {
  switch (join.kind) {
    case 'k3s':
      return RECIPES.k3s(join, node);
    case 'rke2':
      return RECIPES.rke2(join, node);
    case 'kubeadm':
      return RECIPES.kubeadm(join, node);
    case 'custom':
      return RECIPES.custom(join, node);
  }
}
