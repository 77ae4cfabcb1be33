// SPDX-License-Identifier: Apache-2.0
// Installs the program of k3s or RKE2: a release file whose checksum is verified before it runs, the vendor's
// install script if configured, or nothing.
import type { GuestFile } from '../guest-file.ts';
import { unitPath } from '../paths.ts';
import { joinLines, quoteShell } from '../shell-text.ts';
import type { RancherDistribution, RancherJoin } from './rancher-distribution.ts';

export interface Installation {
  readonly script: string;
  readonly files: readonly GuestFile[];
  readonly packages: readonly string[];
}

const DOWNLOAD_PACKAGES = ['curl', 'ca-certificates'];

export function planInstallation(
  join: RancherJoin,
  distribution: RancherDistribution,
  architecture: string,
): Installation {
  switch (join.install) {
    case 'none':
      return { script: '', files: [notifyDropIn(distribution)], packages: [] };
    case 'script':
      return {
        script: runOnce(scriptCommands(join, distribution)),
        files: [notifyDropIn(distribution)],
        packages: DOWNLOAD_PACKAGES,
      };
    case 'binary':
      return {
        script: runOnce(binaryCommands(join, distribution, architecture)),
        files: [
          {
            path: unitPath(`${distribution.unit}.service`),
            content: renderUnit(distribution),
            mode: '0644',
          },
        ],
        packages: DOWNLOAD_PACKAGES,
      };
  }
}

/** A vendor's unit may count as started before it has read the token, which would then be removed too early. */
function notifyDropIn({ unit }: RancherDistribution): GuestFile {
  return {
    path: `${unitPath(`${unit}.service`)}.d/10-pvescaler.conf`,
    content: joinLines('[Service]', 'Type=notify'),
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
