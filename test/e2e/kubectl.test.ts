// SPDX-License-Identifier: Apache-2.0
// The real kubectl with `pvescaler sim kubernetes`.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { root } from '../support/pvescaler.ts';
import { Program, waitUntil } from './controlplane/index.ts';
import { BUILD_TIMEOUT_MS, buildKubectl } from './support/command-line-tools.ts';

const MANIFEST = `
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      containers: [{ name: main, image: nginx, resources: { requests: { cpu: 100m } } }]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: { name: web }
spec: { maxUnavailable: 1, selector: { matchLabels: { app: web } } }
`;

let folder: string;
let program: string;
let simulator: Program;

beforeAll(async () => {
  program = buildKubectl();
  folder = mkdtempSync(join(tmpdir(), 'kubectl-'));
  const kubeconfig = join(folder, 'kubeconfig');
  writeFileSync(join(folder, 'web.yaml'), MANIFEST);
  simulator = new Program({
    name: 'sim kubernetes',
    path: process.execPath,
    args: [
      join(root, 'bin/pvescaler.js'),
      ...'sim kubernetes --listen 127.0.0.1:0 --fake-nodes 3 --kubeconfig-out'.split(' '),
      kubeconfig,
    ],
    logFile: join(folder, 'sim.log'),
  });
  await waitUntil('the simulator listens', () => {
    simulator.assertRunning();
    return simulator.log().includes('Ctrl-C');
  });
}, BUILD_TIMEOUT_MS);

afterAll(async () => {
  await simulator.kill();
  rmSync(folder, { recursive: true, force: true });
});

function run(commandLine: string) {
  const { status, stdout, stderr } = spawnSync(program, commandLine.split(' '), {
    cwd: folder,
    env: { ...process.env, KUBECONFIG: join(folder, 'kubeconfig'), HOME: folder },
    encoding: 'utf8',
    timeout: 250_000,
  });
  return { status, stdout, stderr };
}

/** What it prints; it must succeed. */
function kubectl(commandLine: string): string {
  const { status, stdout, stderr } = run(commandLine);
  expect(`${commandLine}: exit ${status} ${stderr}`).toMatch(/: exit 0 /);
  return stdout;
}

/** Titles of the columns. */
function headOf(table: string): readonly string[] {
  return table.split('\n', 1)[0]?.trim().split(/ {2,}/) ?? [];
}

describe('kubectl with the simulated cluster', () => {
  it('lists nodes with the columns of a real API server', () => {
    const nodes = kubectl('get nodes');
    expect(headOf(nodes)).toEqual(['NAME', 'STATUS', 'ROLES', 'AGE', 'VERSION']);
    expect(nodes.match(/^fake-\d +Ready/gm)).toHaveLength(3);
    expect(headOf(kubectl('get nodes -o wide')).slice(5)).toEqual([
      'INTERNAL-IP',
      'EXTERNAL-IP',
      'OS-IMAGE',
      'KERNEL-VERSION',
      'CONTAINER-RUNTIME',
    ]);
  });

  it('applies a manifest twice, scales it and waits for it', () => {
    expect(kubectl('apply -f web.yaml')).toContain('deployment.apps/web created');
    kubectl('rollout status deployment/web --timeout=240s');
    expect(kubectl('apply -f web.yaml')).toContain('deployment.apps/web unchanged');
    expect(kubectl('apply --server-side --force-conflicts -f web.yaml')).toContain(
      'web serverside-applied',
    );
    expect(kubectl('scale deployment web --replicas=5')).toContain('scaled');
    kubectl('rollout status deployment/web --timeout=240s');
    expect(kubectl('get deployment web -o jsonpath={.status.availableReplicas}')).toBe('5');
    expect(headOf(kubectl('get pods -o wide'))).toContain('NODE');
    expect(kubectl('get pods --field-selector spec.nodeName=fake-1 -o name')).toContain('pod/web-');
  });

  it('describes objects with their Events', () => {
    const [pod = ''] = kubectl('get pods -l app=web -o name').split('\n');
    expect(kubectl(`describe ${pod}`)).toMatch(
      /Controlled By: +ReplicaSet\/web-[^]*Successfully assigned/,
    );
    expect(kubectl('describe node fake-1')).toMatch(/Non-terminated Pods: +\([1-9]/);
    expect(kubectl('get events --sort-by=.lastTimestamp')).toContain('Successfully assigned');
    expect(headOf(kubectl('get events'))).toEqual([
      'LAST SEEN',
      'TYPE',
      'REASON',
      'OBJECT',
      'MESSAGE',
    ]);
  });

  it('prints objects of every common kind, in a table, wide and as YAML', () => {
    const kinds =
      'nodes,namespaces,pods,deployments,replicasets,statefulsets,daemonsets,jobs,services,configmaps,secrets,serviceaccounts,pdb,pv,pvc,sc,leases,priorityclasses,roles,events';
    for (const output of ['', ' -o wide', ' -o name']) {
      const printed = kubectl(`get ${kinds} -A${output}`);
      for (const name of ['node/fake-1', 'deployment.apps/web', 'configmap/kube-root-ca.crt'])
        expect(printed).toContain(name);
    }
    expect(kubectl('get deployment web -o yaml')).toMatch(/^kind: Deployment$/m);
    expect(kubectl('describe deployment web')).toMatch(/Replicas: +5 desired/);
    expect(kubectl('describe pdb web')).toContain('Max unavailable');
    expect(kubectl('describe namespace default')).toContain('Active');
  });

  it('explains kinds and the fields that the simulator acts on', () => {
    expect(kubectl('explain pods')).toMatch(/KIND: +Pod[^]*spec\s<Object>/);
    expect(kubectl('explain deployment.spec.replicas')).toContain('Number of pods');
    expect(run('explain pods.spec.nothing')).toMatchObject({ status: 1 });
  });

  it('refuses kubectl top and exec: nothing is measured, and no container runs', () => {
    expect(run('top nodes')).toMatchObject({
      status: 1,
      stderr: 'error: Metrics API not available\n',
    });
    for (const command of ['exec deploy/web -- date', 'port-forward deploy/web 0:80'])
      expect(run(command)).toMatchObject({
        status: 1,
        stderr: expect.stringContaining('the simulator runs no containers'),
      });
  });

  it('says that a kind does not exist', () => {
    const thing = 'apiVersion: example.com/v1\nkind: Thing\nmetadata: { name: x }\n';
    writeFileSync(join(folder, 'thing.yaml'), thing);
    expect(run('apply -f thing.yaml')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('no matches for kind "Thing" in version "example.com/v1"'),
    });
  });

  it('says that there are no logs', () => {
    const [pod = ''] = kubectl('get pods -l app=web -o name').split('\n');
    expect(kubectl(`logs ${pod}`)).toBe('The simulator runs no containers.\n');
  });

  it('drains a node within the disruption budget, and makes it schedulable again', () => {
    expect(kubectl('cordon fake-1')).toContain('fake-1 cordoned');
    expect(kubectl('get nodes')).toMatch(/fake-1 +Ready,SchedulingDisabled/);
    expect(kubectl('drain fake-1 --ignore-daemonsets --timeout=240s')).toContain('fake-1 drained');
    expect(kubectl('get pods --field-selector spec.nodeName=fake-1 -o name')).toBe('');
    kubectl('rollout status deployment/web --timeout=240s');
    expect(kubectl('uncordon fake-1')).toContain('fake-1 uncordoned');
  });

  it.each([
    ['namespace one', 'namespace/one'],
    ['deployment two --image=nginx --replicas=0 --port=80', 'deployment.apps/two'],
    ['job three --image=busybox -- date', 'job.batch/three'],
    ['configmap four --from-literal=key=value', 'configmap/four'],
    ['secret generic five --from-literal=key=value', 'secret/five'],
    ['poddisruptionbudget six --selector=app=two --min-available=50%', 'policy/six'],
    ['priorityclass seven --value=7', 'scheduling.k8s.io/seven'],
    ['serviceaccount eight', 'serviceaccount/eight'],
    ['service clusterip nine --tcp=80:8080', 'service/nine'],
    ['role ten --verb=get --resource=pods', 'rbac.authorization.k8s.io/ten'],
    ['clusterrole eleven --verb=get,list --resource=nodes', 'rbac.authorization.k8s.io/eleven'],
    ['rolebinding twelve --role=ten --user=me', 'rbac.authorization.k8s.io/twelve'],
    ['clusterrolebinding thirteen --clusterrole=eleven --user=me', 'k8s.io/thirteen'],
  ])('creates %s', (what, created) => {
    expect(kubectl(`create ${what}`)).toContain(`${created} created`);
  });

  it('reads back what it created', () => {
    expect(kubectl('get secret five -o jsonpath={.data.key}')).toBe('dmFsdWU=');
    expect(kubectl('get deployment two -o jsonpath={.spec.replicas}')).toBe('0');
    expect(kubectl('get pdb six -o jsonpath={.spec.minAvailable}')).toBe('50%');
    expect(kubectl('get priorityclass seven -o jsonpath={.value}')).toBe('7');
    expect(kubectl('get service nine -o jsonpath={.spec.ports[0].targetPort}')).toBe('8080');
    expect(kubectl('get clusterrole eleven -o jsonpath={.rules[0].verbs}')).toBe('["get","list"]');
    expect(kubectl('get rolebinding twelve -o jsonpath={.roleRef.name}')).toBe('ten');
    expect(kubectl('auth can-i create pods')).toBe('yes\n');
    expect(kubectl('auth can-i --list')).toMatch(/^\*\.\* .*\[\*\]$/m);
    expect(kubectl('auth whoami')).toMatch(/^Username +kubernetes-admin$/m);
  });

  it('labels, taints, patches and deletes', () => {
    expect(kubectl('label node fake-2 disk=ssd')).toContain('labeled');
    expect(kubectl('taint node fake-2 key=value:NoSchedule')).toContain('tainted');
    expect(kubectl('get nodes -l disk=ssd -o name')).toBe('node/fake-2\n');
    expect(kubectl('patch deployment web --patch {"spec":{"replicas":1}}')).toContain('patched');
    expect(kubectl('delete -f web.yaml --timeout=240s')).toContain('"web" deleted');
    expect(kubectl('delete namespace one --timeout=240s')).toContain('"one" deleted');
    expect(run('get deployment web')).toMatchObject({
      status: 1,
      stderr: 'Error from server (NotFound): deployments.apps "web" not found\n',
    });
  });
});
