// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { loadText, VALID } from '../testing/load-text.ts';
import { renderConfigJson, renderConfigYaml } from './show-config.ts';

function loaded(text: string | undefined, environment: Record<string, string> = {}) {
  const result = loadText(text, { environment, flags: [{ flag: '--port', value: '7' }] });
  if (!result.ok) throw new Error(result.problems.map(({ message }) => message).join('\n'));
  return result;
}

describe('config show', () => {
  it('shows the origin of each value', () => {
    const lines = renderConfigYaml(
      loaded(VALID, { PM_NODE: 'pve1', PM_SERVICE_TOKEN_SECRET: 'hunter2' }),
    ).split('\n');
    expect(lines).toContain('mode: standalone  # default');
    expect(lines).toContain('  listen: ":7"  # flag --port');
    expect(lines).toContain('      - "https://pve1:8006"  # c.yaml:3:17');
    expect(lines).toContain(
      '      secretEnv: PM_SERVICE_TOKEN_SECRET  # env PM_SERVICE_TOKEN_SECRET; the secret: ••••',
    );
    expect(lines).toContain('        - pve1  # env PM_NODE');
    expect(lines).toContain('  - name: small  # c.yaml:8:11');
    expect(lines.filter((line) => /: .*[^:]$/.test(line) && !line.includes('  # '))).toEqual([]);
  });

  it('can be loaded again with the same result', () => {
    const text = `${VALID}    labels: { "on": "yes", num: "1", empty: "" }\n    taints: ["a=b:NoSchedule"]\nssh: { publicKeys: ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGV4YW1wbGU me # x"] }\n`;
    const first = loaded(text);
    const again = loadText(renderConfigYaml(first));
    expect(again.ok && again.config).toEqual(first.config);
    expect(parse(renderConfigYaml(first))).toEqual(JSON.parse(JSON.stringify(first.file)));
  });

  it('masks values that may be secrets', () => {
    const text = `${VALID}join:
  custom:
    scriptFile: join.sh
    files: [{ path: /etc/x, content: "password=hunter2" }]
  kubeadm:
    kubeletArgs: ["--auth-key=hunter2", "v=4"]
images2: &x {}
`.replace('images2: &x {}\n', '');
    const shown = loaded(
      `${text}`
        .replace('https://images/jammy.img', 'https://images/jammy.img?sig=hunter2')
        .replace(
          '    size:',
          '    join: custom\n    labels: { id: 1f0c2b9e-7d35-4c8e-9a43-0b6f52d9c1aa }\n    size:',
        ),
    );
    for (const output of [renderConfigYaml(shown), JSON.stringify(renderConfigJson(shown))]) {
      expect(output).not.toContain('hunter2');
      expect(output).not.toContain('1f0c2b9e');
      expect(output).toContain('••••');
      expect(output).toContain('v=4');
    }
  });

  it.each([
    ['join: { k3s: { server: https://k:6443, agentArgs: [--password, hunter2] } }'],
    ['join: { k3s: { server: https://k:6443, agentArgs: ["--password hunter2"] } }'],
    ['join: { k3s: { server: https://k:6443, agentArgs: ["--v 4 --pwd hunter2"] } }'],
    ['join: { k3s: { server: https://k:6443, agentArgs: ["--pwd=hunter2"] } }'],
    ['join: { k3s: { server: https://k:6443, agentArgs: ["--vpn-auth=name=x,joinKey=hunter2"] } }'],
    ['join: { k3s: { server: https://k:6443, agentArgs: ["--kubelet-arg=my-token=hunter2"] } }'],
    ['join: { kubeadm: { kubeletArgs: ["bootstrap-secret hunter2", "--client-secret hunter2"] } }'],
    ['join: { kubeadm: { kubeletArgs: ["--client-secret", "hunter2"] } }'],
    [`join: { kubeadm: { kubeletArgs: ["K3S_TOKEN=hunter2", '"--password"=hunter2'] } }`],
    ['join: { kubeadm: { kubeletArgs: ["--password:hunter2", "v --Password hunter2"] } }'],
    ['join: { custom: { scriptFile: "join.sh --token hunter2" } }'],
    ['    labels: { password: hunter2 }'],
    ['    labels: { example.com/api-key: hunter2 }'],
    ['    taints: ["password=hunter2:NoSchedule"]'],
    ['    taints: [{ key: password, value: hunter2, effect: NoSchedule }]'],
  ])('masks %s', (line) => {
    const shown = loaded(`${VALID}${line}\n`);
    for (const output of [renderConfigYaml(shown), JSON.stringify(renderConfigJson(shown))]) {
      expect(output).not.toContain('hunter2');
      expect(output).toContain('••••');
    }
  });

  it('does not mask values that only have a similar name', () => {
    const text = `${VALID}    labels: { key: v1 }
    taints: ["key=v2:NoSchedule", { key: key, value: v3, effect: NoExecute }]
    extendedResources: { example.com/token: "4" }
join:
  k3s:
    server: https://k:6443
    agentArgs:
      - --node-taint=key=v5:NoSchedule
      - --token-file=/etc/v6
      - --image-credential-provider-config
      - /etc/v7
      - --kubelet-arg=authentication-token-webhook=v8
    proxy: { http: "http://token-proxy:1239" }
`;
    const shown = renderConfigYaml(loaded(text));
    expect(
      ['v1', 'v2', 'v3', '4', 'v5', 'v6', 'v7', 'v8', '1239'].filter((v) => !shown.includes(v)),
    ).toEqual([]);
    expect(shown).toContain('token: auto');
    expect(shown.replaceAll('the secret: ••••', '')).not.toContain('••••');
  });

  it('returns JSON data', () => {
    const json = renderConfigJson(loaded(VALID));
    expect(json['pools[0].size.memory']).toEqual({
      value: '4Gi',
      origin: { kind: 'file', detail: 'c.yaml:9:29' },
    });
    expect(json['cluster.name']).toEqual({
      value: 'kubernetes',
      origin: { kind: 'default', detail: '' },
    });
    expect(json['pools[0].regions[0]']).toEqual({
      value: 'lab',
      origin: { kind: 'default', detail: '' },
    });
  });
});
