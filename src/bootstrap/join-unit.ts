// SPDX-License-Identifier: Apache-2.0
// What carries a join plan out inside the guest: a unit whose log is in the journal, and its script. The unit
// fails loudly and is started again until the join is done; then it takes the secrets away and itself out of
// the boot. Needs systemd 244, the first that restarts units of this type.
import type { GuestFile } from './guest-file.ts';
import { FIRST_BOOT_SCRIPT, JOIN_SCRIPT, JOIN_UNIT, PROXY_FILE, STATE, unitPath } from './paths.ts';
import type { JoinPlan } from './recipes/join-plan.ts';
import type { JoinVia } from './seed-input.ts';
import { lines } from './shell-text.ts';

/** cloud-init keeps what it was given, and with it the secret, in these files. */
const COPIES = [
  '/var/lib/cloud/instances/*/user-data.txt*',
  '/var/lib/cloud/instances/*/cloud-config.txt',
  '/var/lib/cloud/instances/*/obj.pkl',
  '/run/cloud-init/instance-data-sensitive.json',
  '/run/cloud-init/combined-cloud-config.json',
];

export function joinFiles(plan: JoinPlan, via: JoinVia): GuestFile[] {
  return [
    { path: JOIN_SCRIPT, content: joinScript(plan, via), mode: '0700' },
    { path: unitPath(JOIN_UNIT), content: joinUnit(), mode: '0644' },
  ];
}

function joinUnit(): string {
  return lines(
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

function joinScript(plan: JoinPlan, via: JoinVia): string {
  const forgotten = [
    ...plan.secrets.map(({ path }) => path),
    ...(via === 'cloud-init' ? COPIES : []),
  ];
  return lines(
    '#!/bin/sh',
    '# Joins this machine to its cluster, once.',
    'set -eu',
    `state=${STATE}`,
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
    ...forgotten.map((path) => `  rm -f ${path}`),
    `  systemctl disable ${JOIN_UNIT}`,
    '}',
    '',
    // Cut short between the join and the end of `finish`: only the rest is done.
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

/** The server's certificate is judged by the join; here it only has to answer, for ten minutes at most. */
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
 * The last command of the first boot. A failed join is cloud-init's failure too, but cloud-init is switched
 * off all the same: everything that a later attempt needs is on the disk, and the seed will not be there.
 */
export function firstBootFile(joins: boolean): GuestFile {
  const content = lines(
    '#!/bin/sh',
    '# Ends the first boot of this machine.',
    'set -eu',
    'status=0',
    'systemctl daemon-reload',
    // Not waited for: without its virtio port it would never come up.
    'systemctl start --no-block qemu-guest-agent.service || echo "no guest agent" >&2',
    ...(joins
      ? [`systemctl enable ${JOIN_UNIT}`, `systemctl start ${JOIN_UNIT} || status=$?`]
      : []),
    'touch /etc/cloud/cloud-init.disabled',
    'exit "$status"',
  );
  return { path: FIRST_BOOT_SCRIPT, content, mode: '0700' };
}
