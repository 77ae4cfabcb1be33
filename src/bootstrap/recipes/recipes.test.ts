// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { recipeFor } from '../first-boot.ts';
import { buildRegistration } from '../registration.ts';
import {
  aCustomJoin,
  aK3sJoin,
  aKubeadmJoin,
  anRke2Join,
  aSeedInput,
  BOOTSTRAP_TOKEN,
  unwrap,
} from '../testing/a-seed.ts';
import type { JoiningNode } from './join-plan.ts';

const { machine, pool } = aSeedInput();
const node: JoiningNode = {
  machine,
  architecture: 'amd64',
  registration: unwrap(buildRegistration(machine, pool)),
};

function k3sConfig(agentArgs: readonly string[]) {
  const plan = unwrap(recipeFor('k3s')(aK3sJoin({ agentArgs }), node));
  return parse(plan.files.find(({ path }) => path.endsWith('/config.yaml'))?.content ?? '');
}

describe('the k3s and RKE2 recipe', () => {
  it.each([
    [['--node-ip=10.0.0.9'], { 'node-ip': '10.0.0.9' }],
    [['--node-ip', '10.0.0.9', '--debug'], { 'node-ip': '10.0.0.9', debug: true }],
    [['--node-ip 10.0.0.9'], { 'node-ip': '10.0.0.9' }],
    [
      ['--node-label=a=b', '--node-label=c=d'],
      { 'node-label': expect.arrayContaining(['a=b', 'c=d']) },
    ],
    [['--flannel-conf=/a b'], { 'flannel-conf': '/a b' }],
    [['--v', '-1'], { v: '-1' }],
    [
      ['--kubelet-arg=max-pods=9'],
      { 'kubelet-arg': ['provider-id=proxmox://lab/1250', 'max-pods=9'] },
    ],
  ])('writes %j to the config file', (args, wanted) => {
    expect(k3sConfig(args)).toMatchObject(wanted);
  });

  it.each([
    [aK3sJoin({ version: 'v1.34.4+rke2r1' }), "'v1.34.4+rke2r1' is not a release of k3s"],
    [aK3sJoin({ version: 'latest' }), "'latest' is not a release of k3s"],
    [aK3sJoin({ sha256: 'abc' }), 'the sha256 must be 64 hexadecimal digits'],
    [aK3sJoin({ downloadUrl: 'mirror' }), "download URL 'mirror' is not a URL"],
    [aK3sJoin({ server: 'http://a:6443' }), "server 'http://a:6443' is not an https URL"],
    [aK3sJoin({ server: '10.0.0.2' }), "server '10.0.0.2' is not a URL"],
    [aK3sJoin({ server: 'https://a:b@c' }), 'the server URL must not contain a password'],
    [aK3sJoin({ token: '' }), 'the join token is empty'],
    [aK3sJoin({ token: 'a b' }), 'the join token contains white space or non-ASCII characters'],
    [
      aK3sJoin({ agentArgs: ['node-ip'] }),
      "agent argument 'node-ip' must have the form --name=value",
    ],
    [
      aK3sJoin({ agentArgs: ['--token=x'] }),
      "agent argument '--token' is reserved: the recipe sets it",
    ],
    [
      aK3sJoin({ agentArgs: ['--kubelet-arg', '--provider-id=x'] }),
      "agent argument '--provider-id' is reserved: the recipe sets it",
    ],
    [
      aK3sJoin({ agentArgs: ['--kubelet-arg=provider-id=x'] }),
      "agent argument '--kubelet-arg' is reserved: the recipe sets it",
    ],
  ])('refuses invalid input %#', (join, problem) => {
    const refusal = recipeFor('k3s')(join, node);
    expect(refusal).toEqual({ ok: false, problem });
  });

  it.each(['-t=x', '-t x', '-s=https://x', '-c=/x', '--config /x'])(
    'refuses the argument %s, which it sets itself',
    (argument) => {
      const name = argument.split(/[ =]/)[0];
      const refusal = recipeFor('k3s')(aK3sJoin({ agentArgs: [argument] }), node);
      const problem = `agent argument '${name}' is reserved: the recipe sets it`;
      expect(refusal).toEqual({ ok: false, problem });
    },
  );

  it.each(['--log=/var/log/k3s', '-l /var/log/k3s'])(
    'refuses the argument %s, with which the agent is ready before it has joined',
    (argument) => {
      const refusal = recipeFor('k3s')(aK3sJoin({ agentArgs: [argument] }), node);
      const problem = expect.stringContaining('ready before it has joined');
      expect(refusal).toEqual({ ok: false, problem });
    },
  );

  it('needs neither packages nor its own unit if the image has everything', () => {
    const plan = unwrap(recipeFor('rke2')(anRke2Join({ install: 'none' }), node));
    expect(plan.packages).toEqual([]);
    expect(plan.files.map(({ path }) => path)).toEqual([
      '/etc/rancher/rke2/config.yaml',
      '/etc/systemd/system/rke2-agent.service.d/10-pvescaler.conf',
      '/usr/local/sbin/pvescaler-agent-token',
      '/var/lib/pvescaler/join-token',
    ]);
    expect(plan.script).not.toContain('curl');
  });
});

describe('the kubeadm recipe', () => {
  it('writes the same join in both configuration formats', () => {
    const join = aKubeadmJoin({
      server: 'https://[2001:db8::1]',
      kubeletArgs: ['--node-ip=10.0.0.9'],
    });
    const { secrets } = unwrap(recipeFor('kubeadm')(join, node));
    const [old, now] = secrets.map(({ content }) => parseAllDocuments(content)[0]?.toJS());
    expect(old.apiVersion).toBe('kubeadm.k8s.io/v1beta3');
    expect(now.apiVersion).toBe('kubeadm.k8s.io/v1beta4');
    expect(now.discovery).toEqual(old.discovery);
    expect(now.discovery.bootstrapToken).toMatchObject({
      apiServerEndpoint: '[2001:db8::1]:443',
      token: BOOTSTRAP_TOKEN,
    });
    const args = now.nodeRegistration.kubeletExtraArgs.map(
      ({ name, value: text }: { name: string; value: string }) => [name, text],
    );
    expect(Object.fromEntries(args)).toEqual(old.nodeRegistration.kubeletExtraArgs);
    expect(args).toContainEqual(['node-ip', '10.0.0.9']);
    expect(secrets.every(({ mode }) => mode === '0600')).toBe(true);
  });

  it.each([
    [aKubeadmJoin({ caCertHashes: [] }), 'without it the server cannot be authenticated'],
    [aKubeadmJoin({ caCertHashes: ['sha256:12'] }), "CA hash 'sha256:12' must be"],
    [aKubeadmJoin({ token: 'K10abc::x' }), 'must be a bootstrap token of the form'],
    [aKubeadmJoin({ kubeletArgs: ['max-pods'] }), 'must have the form name=value'],
    [
      aKubeadmJoin({ kubeletArgs: ['node-labels=a=b'] }),
      "'node-labels' is reserved: the recipe sets it",
    ],
    [aKubeadmJoin({ server: 'http://x' }), 'is not an https URL'],
  ])('refuses invalid input %#', (join, problem) => {
    const refusal = recipeFor('kubeadm')(join, node);
    expect(refusal).toEqual({ ok: false, problem: expect.stringContaining(problem) });
  });
});

describe('the custom recipe', () => {
  it.each([
    [{ script: undefined }, 'needs a script or a cloud-config'],
    [{ script: 'echo' }, "must start with '#!'"],
    [{ token: 'a\nb' }, 'white space'],
  ])('refuses %j', (overrides, problem) => {
    const refusal = recipeFor('custom')(aCustomJoin(overrides), node);
    expect(refusal).toEqual({ ok: false, problem: expect.stringContaining(problem) });
  });

  it('works without a token', () => {
    const plan = unwrap(recipeFor('custom')(aCustomJoin({ token: undefined }), node));
    expect(plan.secrets).toEqual([]);
    expect(plan.script).not.toContain('TOKEN');
  });
});
