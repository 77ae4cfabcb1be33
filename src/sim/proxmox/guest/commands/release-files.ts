// SPDX-License-Identifier: Apache-2.0
// The files of k3s and RKE2 releases, and simulated versions of their installer scripts.

export interface ArchiveFile {
  readonly mode: string;
  /** Absent for a program, which is simulated by its name. */
  readonly content?: string;
}

export interface Archive {
  readonly pattern: RegExp;
  readonly files: Readonly<Record<string, ArchiveFile>>;
}

const RKE2_UNIT = [
  '[Unit]',
  'Description=RKE2 agent',
  '[Service]',
  'Type=notify',
  'Environment=HOME=/root',
  'EnvironmentFile=-/etc/default/rke2-agent',
  'ExecCondition=true',
  'ExecStart=/usr/local/bin/rke2 agent',
  '[Install]',
  'WantedBy=multi-user.target',
  '',
].join('\n');

/** Known archives by download URL; the first match wins. */
export const KNOWN_ARCHIVES: readonly Archive[] = [
  {
    pattern: /rke2\.linux-[a-z0-9]+\.tar/,
    files: {
      'bin/rke2': { mode: '0755' },
      'lib/systemd/system/rke2-agent.service': { mode: '0644', content: RKE2_UNIT },
    },
  },
  { pattern: /crictl-/, files: { crictl: { mode: '0755' } } },
];

/** The files in the checksum list of a k3s or RKE2 release. */
export function listReleaseFiles(architecture: string): readonly string[] {
  return [
    architecture === 'amd64' ? 'k3s' : `k3s-${architecture}`,
    `k3s-airgap-images-${architecture}.tar.zst`,
    `rke2.linux-${architecture}.tar.gz`,
    `rke2-images.linux-${architecture}.tar.zst`,
  ];
}

const K3S_INSTALL = `set -e
mkdir -p /etc/systemd/system /etc/rancher/k3s
curl -fsSL -o /usr/local/bin/k3s "https://github.com/k3s-io/k3s/releases/download/\${INSTALL_K3S_VERSION:-latest}/k3s"
chmod 0755 /usr/local/bin/k3s
role=\${INSTALL_K3S_EXEC:-$*}
case "$role" in agent*|server*) ;; *) if [ -n "$K3S_URL" ]; then role="agent $role"; else role="server $role"; fi ;; esac
case "$role" in agent*) unit=k3s-agent ;; *) unit=k3s ;; esac
env | grep '^K3S_' > /etc/systemd/system/$unit.service.env || true
chmod 0600 /etc/systemd/system/$unit.service.env
cat > /etc/systemd/system/$unit.service <<END
[Service]
Type=notify
EnvironmentFile=-/etc/systemd/system/$unit.service.env
ExecStart=/usr/local/bin/k3s $role
END
systemctl daemon-reload
systemctl enable $unit
if [ -z "$INSTALL_K3S_SKIP_START" ]; then systemctl restart $unit; fi
`;

const RKE2_INSTALL = `set -e
curl -fsSL -o /tmp/rke2.tar.gz "https://github.com/rancher/rke2/releases/download/\${INSTALL_RKE2_VERSION:-latest}/rke2.linux-amd64.tar.gz"
tar xzf /tmp/rke2.tar.gz -C /usr/local
`;

/** Installer scripts for `curl … | sh`, by host. */
export const INSTALL_SCRIPTS: Readonly<Record<string, string>> = {
  'get.k3s.io': K3S_INSTALL,
  'get.rke2.io': RKE2_INSTALL,
};
