// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { registrationOf } from '../registration.ts';
import {
  aCustomJoin,
  aK3sJoin,
  aKubeadmJoin,
  anRke2Join,
  aSeedInput,
  BOOTSTRAP_TOKEN,
  value,
} from '../testing/a-seed.ts';
import type { JoiningNode } from './join-plan.ts';
import { recipeFor } from './recipe-for.ts';

const { machine, pool } = aSeedInput();
const node: JoiningNode = {
  machine,
  architecture: 'amd64',
  registration: value(registrationOf(machine, pool)),
};

function k3sConfig(agentArgs: readonly string[]) {
  const plan = value(recipeFor('k3s')(aK3sJoin({ agentArgs }), node));
  return parse(plan.files.find(({ path }) => path.endsWith('/config.yaml'))?.content ?? '');
}

describe('k3s and RKE2', () => {
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
  ])('takes %j into the config file', (args, wanted) => {
    expect(k3sConfig(args)).toMatchObject(wanted);
  });

  it.each([
    [aK3sJoin({ version: 'v1.34.4+rke2r1' }), "'v1.34.4+rke2r1' is not a release of k3s"],
    [aK3sJoin({ version: 'latest' }), "'latest' is not a release of k3s"],
    [aK3sJoin({ sha256: 'abc' }), 'the sha256 is not 64 hexadecimal digits'],
    [aK3sJoin({ downloadUrl: 'mirror' }), "download URL 'mirror' is not a URL"],
    [aK3sJoin({ server: 'http://a:6443' }), "server 'http://a:6443' is not an https URL"],
    [aK3sJoin({ server: '10.0.0.2' }), "server '10.0.0.2' is not a URL"],
    [aK3sJoin({ server: 'https://a:b@c' }), 'the URL of the server contains a password'],
    [aK3sJoin({ token: '' }), 'the join token is empty'],
    [aK3sJoin({ token: 'a b' }), 'the join token has white space or characters beyond ASCII'],
    [
      aK3sJoin({ agentArgs: ['node-ip'] }),
      "agent argument 'node-ip' is not of the form --name=value",
    ],
    [aK3sJoin({ agentArgs: ['--token=x'] }), "agent argument '--token' sets what the recipe sets"],
    [
      aK3sJoin({ agentArgs: ['--kubelet-arg', '--provider-id=x'] }),
      "agent argument '--provider-id' sets what the recipe sets",
    ],
    [
      aK3sJoin({ agentArgs: ['--kubelet-arg=provider-id=x'] }),
      "agent argument '--kubelet-arg' sets what the recipe sets",
    ],
  ])('refuses %#', (join, problem) => {
    const refusal = recipeFor('k3s')(join, node);
    expect(refusal).toEqual({ ok: false, problem });
  });

  it('needs neither packages nor a unit of ours where the image has all', () => {
    const plan = value(recipeFor('rke2')(anRke2Join({ install: 'none' }), node));
    expect(plan.packages).toEqual([]);
    expect(plan.files.map(({ path }) => path)).toEqual([
      '/etc/rancher/rke2/config.yaml',
      '/etc/systemd/system/rke2-agent.service.d/10-pvescaler.conf',
    ]);
    expect(plan.script).not.toContain('curl');
  });
});

describe('kubeadm', () => {
  it('writes the same join in both forms', () => {
    const join = aKubeadmJoin({
      server: 'https://[2001:db8::1]',
      kubeletArgs: ['--node-ip=10.0.0.9'],
    });
    const { secrets } = value(recipeFor('kubeadm')(join, node));
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
    [aKubeadmJoin({ caCertHashes: [] }), 'without it anybody could be the server'],
    [aKubeadmJoin({ caCertHashes: ['sha256:12'] }), "CA hash 'sha256:12' is not"],
    [aKubeadmJoin({ token: 'K10abc::x' }), 'is not a bootstrap token of the form'],
    [aKubeadmJoin({ kubeletArgs: ['max-pods'] }), 'is not of the form name=value'],
    [aKubeadmJoin({ kubeletArgs: ['node-labels=a=b'] }), "'node-labels' sets what the recipe sets"],
    [aKubeadmJoin({ server: 'http://x' }), 'is not an https URL'],
  ])('refuses %#', (join, problem) => {
    const refusal = recipeFor('kubeadm')(join, node);
    expect(refusal).toEqual({ ok: false, problem: expect.stringContaining(problem) });
  });
});

describe('custom', () => {
  it.each([
    [{ script: undefined }, 'needs a script or a cloud-config'],
    [{ script: 'echo' }, "does not start with '#!'"],
    [{ token: 'a\nb' }, 'white space'],
  ])('refuses %j', (overrides, problem) => {
    const refusal = recipeFor('custom')(aCustomJoin(overrides), node);
    expect(refusal).toEqual({ ok: false, problem: expect.stringContaining(problem) });
  });

  it('goes without a token', () => {
    const plan = value(recipeFor('custom')(aCustomJoin({ token: undefined }), node));
    expect(plan.secrets).toEqual([]);
    expect(plan.script).not.toContain('TOKEN');
  });
});
