// SPDX-License-Identifier: Apache-2.0
// Performs a join plan inside the guest: a systemd unit that logs to the journal, and its script. The unit
// fails visibly and is restarted until the join is done; then it removes the secrets and disables itself. Needs
// systemd 244, the first version that restarts oneshot units.
import type { GuestFile } from './guest-file.ts';
import {
  FIRST_BOOT_SCRIPT,
  JOIN_SCRIPT,
  JOIN_UNIT,
  PROXY_FILE,
  STATE_DIRECTORY,
  unitPath,
} from './paths.ts';
import type { JoinPlan } from './recipes/join-plan.ts';
import type { JoinVia } from './seed-input.ts';
import { joinLines } from './shell-text.ts';

/** cloud-init stores its input, including the secret, in these files. */
const SECRET_COPIES = [
  '/var/lib/cloud/instances/*/user-data.txt*',
  '/var/lib/cloud/instances/*/cloud-config.txt',
  '/var/lib/cloud/instances/*/obj.pkl',
  '/run/cloud-init/instance-data-sensitive.json',
  '/run/cloud-init/combined-cloud-config.json',
];

export function renderJoinFiles(plan: JoinPlan, via: JoinVia): GuestFile[] {
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
    ...plan.script.split('\n').slice(0, -1),
    'finish',
    'echo "joined"',
  );
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
 * in any case: everything that a later attempt needs is on the disk, and the seed will be removed.
 */
export function renderFirstBootFile(joins: boolean): GuestFile {
  const content = joinLines(
    '#!/bin/sh',
    '# Ends the first boot of this machine.',
    'set -eu',
    'status=0',
    'systemctl daemon-reload',
    // Does not wait: without its virtio port the guest agent would never start.
    'systemctl start --no-block qemu-guest-agent.service || echo "no guest agent" >&2',
    ...(joins
      ? [`systemctl enable ${JOIN_UNIT}`, `systemctl start ${JOIN_UNIT} || status=$?`]
      : []),
    'touch /etc/cloud/cloud-init.disabled',
    'exit "$status"',
  );
  return { path: FIRST_BOOT_SCRIPT, content, mode: '0700' };
}
