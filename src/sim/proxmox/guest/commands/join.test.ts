// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { createShellHarness } from '../testing/shell-harness.ts';

const K3S =
  'curl -fsSLo /usr/local/bin/k3s https://example.org/k3s && chmod 0755 /usr/local/bin/k3s';

describe('k3s agent of a simulated guest', () => {
  it('is not found before it is installed and executable', async () => {
    const { sh } = createShellHarness();
    expect((await sh('k3s agent')).code).toBe(127);
    await sh('curl -fsSLo /usr/local/bin/k3s https://example.org/k3s');
    expect((await sh('/usr/local/bin/k3s agent')).code).toBe(126);
  });

  it('joins with its config files when started by systemd', async () => {
    const { sh, history, system } = createShellHarness();
    system.setHostname('Worker-3');
    await sh(K3S);
    await sh(`mkdir -p /etc/rancher/k3s/config.yaml.d
cat > /etc/rancher/k3s/config.yaml <<'END'
server: https://10.0.0.2:6443
token: K10abc::id.secret
node-label: ["autoscaler.proxmox/group=small"]
node-taint: ["startup=1:NoSchedule"]
kubelet-arg: ["provider-id=proxmox://lab/1250", "--node-labels=a=b,c=d"]
END
printf 'node-label+: [x=y]\\n' > /etc/rancher/k3s/config.yaml.d/50-more.yaml
printf '[Service]\\nType=notify\\nExecStart=/usr/local/bin/k3s agent\\n' > /etc/systemd/system/k3s-agent.service
systemctl enable --now k3s-agent`);
    expect(history.errors).toEqual([]);
    expect(history.joinAttempts).toEqual([
      {
        distribution: 'k3s',
        server: 'https://10.0.0.2:6443',
        token: 'K10abc::id.secret',
        nodeName: 'worker-3',
        labels: ['autoscaler.proxmox/group=small', 'x=y', 'a=b', 'c=d'],
        taints: ['startup=1:NoSchedule'],
        kubeletArgs: ['provider-id=proxmox://lab/1250', 'node-labels=a=b,c=d'],
        providerId: 'proxmox://lab/1250',
        caCertHashes: [],
        source: '/etc/rancher/k3s/config.yaml',
        atMs: expect.any(Number),
      },
    ]);
  });

  it('prefers flags to the environment and the environment to files', async () => {
    const { sh, history } = createShellHarness();
    await sh(K3S);
    await sh(
      'echo tokentext > /run/token; K3S_URL=https://env:6443 K3S_TOKEN_FILE=/run/token k3s agent --node-name n1 --node-label a=b',
    );
    await sh('rm -r /var/lib/rancher');
    await sh('K3S_URL=https://env:6443 K3S_TOKEN=t k3s agent --server https://flag:6443');
    expect(history.joinAttempts).toMatchObject([
      {
        server: 'https://env:6443',
        token: 'tokentext',
        nodeName: 'n1',
        labels: ['a=b'],
        source: 'k3s agent',
      },
      { server: 'https://flag:6443', token: 't' },
    ]);
  });

  it('does not start without a server or a token', async () => {
    const { sh, history } = createShellHarness();
    await sh(K3S);
    expect((await sh('k3s agent')).err).toContain('--server is required');
    expect((await sh('k3s agent -s https://x:6443')).err).toContain('token must not be empty');
    expect((await sh('k3s --version && k3s kubectl get node')).code).toBe(0);
    expect(history.joinAttempts).toEqual([]);
  });

  it('is installed by the script from get.k3s.io', async () => {
    const { sh, history, system } = createShellHarness();
    const result = await sh(
      'curl -sfL https://get.k3s.io | K3S_URL=https://10.0.0.2:6443 K3S_TOKEN=abc sh -s - agent --node-label tier=small',
    );
    expect(result).toMatchObject({ code: 0 });
    expect(history.joinAttempts).toMatchObject([
      { server: 'https://10.0.0.2:6443', token: 'abc', labels: ['tier=small'] },
    ]);
    expect(system.enabledUnits.has('k3s-agent')).toBe(true);
    const skipped = createShellHarness();
    await skipped.sh(
      'curl -sfL https://get.k3s.io | INSTALL_K3S_SKIP_START=true INSTALL_K3S_EXEC=agent K3S_TOKEN=abc sh -',
    );
    expect(skipped.history.joinAttempts).toEqual([]);
  });
});

describe('RKE2 agent of a simulated guest', () => {
  it('joins after installation from the archive, with its config file', async () => {
    const { sh, history } = createShellHarness();
    await sh(`curl -fsSLo /tmp/rke2.tgz https://example.org/rke2.linux-amd64.tar.gz
tar xzf /tmp/rke2.tgz -C /usr/local
mkdir -p /etc/rancher/rke2
printf 'server: https://10.0.0.2:9345\\ntoken: abc\\nnode-name: r1\\n' > /etc/rancher/rke2/config.yaml
systemctl enable rke2-agent
systemctl start rke2-agent.service`);
    expect(history.errors).toEqual([]);
    expect(history.joinAttempts).toMatchObject([
      {
        distribution: 'rke2',
        server: 'https://10.0.0.2:9345',
        nodeName: 'r1',
        source: '/etc/rancher/rke2/config.yaml',
      },
    ]);
  });
});

describe('kubeadm of a simulated guest', () => {
  const PREPARE = 'apt-get install -y containerd kubeadm kubelet; sysctl -w net.ipv4.ip_forward=1';

  it('joins with flags and /etc/default/kubelet', async () => {
    const { sh, history, system } = createShellHarness();
    await sh(PREPARE);
    await sh(
      'echo \'KUBELET_EXTRA_ARGS="--provider-id=proxmox://lab/7 --node-labels=a=b"\' > /etc/default/kubelet',
    );
    const result = await sh(
      'kubeadm join 10.0.0.2:6443 --token ab.cd --discovery-token-ca-cert-hash sha256:11 --node-name K1',
    );
    expect(result).toMatchObject({ code: 0 });
    expect(system.activeUnits.has('kubelet')).toBe(true);
    expect(history.joinAttempts).toMatchObject([
      {
        distribution: 'kubeadm',
        server: '10.0.0.2:6443',
        token: 'ab.cd',
        nodeName: 'k1',
        providerId: 'proxmox://lab/7',
        labels: ['a=b'],
        caCertHashes: ['sha256:11'],
        source: 'kubeadm join',
      },
    ]);
  });

  it.each([
    ['v1beta3', 'kubeletExtraArgs: {provider-id: "proxmox://lab/7", node-labels: "a=b"}'],
    [
      'v1beta4',
      'kubeletExtraArgs: [{name: provider-id, value: "proxmox://lab/7"}, {name: node-labels, value: a=b}]',
    ],
  ])('joins with a JoinConfiguration of %s', async (version, extra) => {
    const { sh, history } = createShellHarness();
    await sh(PREPARE);
    await sh(`cat > /run/join.yaml <<'END'
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
---
apiVersion: kubeadm.k8s.io/${version}
kind: JoinConfiguration
discovery: {bootstrapToken: {apiServerEndpoint: "10.0.0.2:6443", token: ab.cd, caCertHashes: ["sha256:11"]}}
nodeRegistration:
  name: k2
  taints: [{key: startup, value: "1", effect: NoSchedule}, {key: bare, effect: NoExecute}]
  ${extra}
END
kubeadm join --config /run/join.yaml`);
    expect(history.joinAttempts).toMatchObject([
      {
        server: '10.0.0.2:6443',
        token: 'ab.cd',
        nodeName: 'k2',
        taints: ['startup=1:NoSchedule', 'bare:NoExecute'],
        labels: ['a=b'],
        providerId: 'proxmox://lab/7',
        source: '/run/join.yaml',
      },
    ]);
  });

  it('reads the server from a discovery file', async () => {
    const { sh, history } = createShellHarness();
    await sh(PREPARE);
    await sh(
      'printf "clusters: [{cluster: {server: \'https://10.0.0.3:6443\'}}]\\n" > /run/d.conf; kubeadm join --discovery-file /run/d.conf --tls-bootstrap-token ab.cd',
    );
    expect(history.joinAttempts).toMatchObject([
      { server: 'https://10.0.0.3:6443', token: 'ab.cd' },
    ]);
  });

  it.each([
    ['swap is on', 'swapon -a', 'ERROR Swap'],
    ['IP forwarding is off', 'sysctl -w net.ipv4.ip_forward=0', 'ip_forward'],
    ['no container runtime runs', 'systemctl stop containerd', 'ERROR CRI'],
  ])('fails preflight while %s', async (_, command, message) => {
    const { sh, history } = createShellHarness();
    await sh(`${PREPARE}; ${command}`);
    const join = 'kubeadm join 10.0.0.2:6443 --token ab.cd';
    expect((await sh(join)).err).toContain(message);
    expect((await sh(`${join} --ignore-preflight-errors=all`)).code).toBe(0);
    expect(history.joinAttempts).toHaveLength(1);
  });

  it('needs the package, an existing config file and discovery settings', async () => {
    const { sh } = createShellHarness();
    expect((await sh('kubeadm version')).code).toBe(127);
    await sh(PREPARE);
    expect((await sh('kubeadm version')).code).toBe(0);
    expect((await sh('kubeadm join --config /none')).err).toContain('no such file');
    expect((await sh('kubeadm join')).err).toContain('discovery');
  });
});
