// SPDX-License-Identifier: Apache-2.0
// How the program of k3s or RKE2 gets onto the machine: as a file of one release whose checksum is verified
// before anything of it runs; by the vendor's script, for who asks for it; or not at all.
import type { GuestFile } from '../guest-file.ts';
import { unitPath } from '../paths.ts';
import { lines, shellWord } from '../shell-text.ts';
import type { Flavour, RancherJoin } from './rancher-flavour.ts';

export interface Installation {
  readonly script: string;
  readonly files: readonly GuestFile[];
  readonly packages: readonly string[];
}

const DOWNLOAD_PACKAGES = ['curl', 'ca-certificates'];

export function installation(
  join: RancherJoin,
  flavour: Flavour,
  architecture: string,
): Installation {
  switch (join.install) {
    case 'none':
      return { script: '', files: [notifies(flavour)], packages: [] };
    case 'script':
      return {
        script: once(byScript(join, flavour)),
        files: [notifies(flavour)],
        packages: DOWNLOAD_PACKAGES,
      };
    case 'binary':
      return {
        script: once(byBinary(join, flavour, architecture)),
        files: [
          { path: unitPath(`${flavour.unit}.service`), content: unitOf(flavour), mode: '0644' },
        ],
        packages: DOWNLOAD_PACKAGES,
      };
  }
}

/** A vendor's unit may count as started before it has read the token, which would then be gone. */
function notifies({ unit }: Flavour): GuestFile {
  return {
    path: `${unitPath(`${unit}.service`)}.d/10-pvescaler.conf`,
    content: lines('[Service]', 'Type=notify'),
    mode: '0644',
  };
}

/** A join that is tried again does not download again. */
function once(commands: readonly string[]): string {
  return lines(
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

function byBinary(join: RancherJoin, flavour: Flavour, architecture: string): readonly string[] {
  const asset = flavour.asset(architecture);
  // A plus in a path is a space to some servers.
  const release = `${base(join.downloadUrl ?? flavour.releases)}/${encodeURIComponent(join.version)}`;
  return [
    `${FETCH} ${asset} ${shellWord(`${release}/${asset}`)}`,
    ...(join.sha256 === undefined
      ? [
          `${FETCH} checksums ${shellWord(`${release}/sha256sum-${architecture}.txt`)}`,
          `grep ${shellWord(` ${asset}$`)} checksums > SHA256SUMS`,
        ]
      : [`echo ${shellWord(`${join.sha256.toLowerCase()}  ${asset}`)} > SHA256SUMS`]),
    'sha256sum -c SHA256SUMS',
    flavour.installs(asset),
  ];
}

function byScript(join: RancherJoin, flavour: Flavour): readonly string[] {
  const settings = flavour.scriptSettings(join.version).map(shellWord).join(' ');
  const argument = flavour.name === 'k3s' ? ' agent' : '';
  return [
    `${FETCH} install.sh ${shellWord(join.downloadUrl ?? flavour.script)}`,
    `env ${settings} sh install.sh${argument}`,
  ];
}

function base(url: string): string {
  return url.replace(/\/+$/, '');
}

function unitOf({ name, program }: Flavour): string {
  return lines(
    '[Unit]',
    `Description=Kubernetes node agent (${name})`,
    'Wants=network-online.target',
    'After=network-online.target',
    '',
    '[Service]',
    // "Started" then means joined: the agent says so itself.
    'Type=notify',
    'ExecStartPre=-/sbin/modprobe br_netfilter',
    'ExecStartPre=-/sbin/modprobe overlay',
    `ExecStart=${program} agent`,
    // Pods outlive a restart of the agent.
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
