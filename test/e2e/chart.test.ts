// SPDX-License-Identifier: Apache-2.0
// The Helm chart, the Kustomize base with its components, the sample workloads, and objects for other products: rendered by
// the real programs, accepted by a server-side dry run of a real API server that has the CRDs of those products.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { type Loose, type Manifest, readManifests, readRepoFile } from '../deploy/manifests.ts';
import { downloadGoModule } from '../support/go-program.ts';
import { pvescaler, root } from '../support/pvescaler.ts';
import { type ControlPlane, startControlPlane } from './controlplane/index.ts';
import { BUILD_TIMEOUT_MS, buildHelm, buildKubectl } from './support/command-line-tools.ts';

const CHART = join(root, 'deploy/chart');
/** Modules that contain the CRDs of other products. */
const PRODUCTS = [
  {
    module: 'github.com/prometheus-operator/prometheus-operator@v0.85.0',
    sum: 'h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=',
    files: ['prometheusrules', 'servicemonitors'].map(
      (name) => `example/prometheus-operator-crd/monitoring.coreos.com_${name}.yaml`,
    ),
  },
  {
    module: 'github.com/argoproj/argo-cd/v3@v3.5.6',
    sum: 'h1:twzdsPiPufKLRtEqD1Jg3FqtuZmSHLTIxs7t6fSkjlk=',
    files: ['manifests/crds/application-crd.yaml'],
  },
  {
    module: 'github.com/cert-manager/cert-manager@v1.21.2',
    sum: 'h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=',
    files: ['certificates', 'issuers'].map((name) => `deploy/crds/cert-manager.io_${name}.yaml`),
  },
];
const REPLICAS = ['state=kubernetes', 'replicas=3'];
const EVERYTHING = [
  'persistence.enabled=true',
  'persistence.storageClass=local',
  'secrets.dashboardToken=pvescaler-dashboard',
  'secrets.readable={pvescaler-proxmox}',
  'imagePullSecrets[0].name=registry',
  'nodeSelector.disk=ssd',
  'podAnnotations.team=infra',
  `image.digest=sha256:${'0'.repeat(64)}`,
  ...['serviceMonitor', 'prometheusRule', 'grafanaDashboard'].map(
    (key) => `monitoring.${key}=true`,
  ),
  'monitoring.labels.release=prometheus',
];

let plane: ControlPlane;
let folder: string;
let kubectlProgram: string;
let helmProgram: string;

beforeAll(async () => {
  [kubectlProgram, helmProgram] = [buildKubectl(), buildHelm()];
  folder = mkdtempSync(join(tmpdir(), 'chart-'));
  plane = await startControlPlane();
  const restricted = { 'pod-security.kubernetes.io/enforce': 'restricted' };
  const metadata = { name: 'pvescaler', labels: restricted };
  await plane.api.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata });
  installDefinitions();
  expect(run(kubectlProgram, ['create', 'namespace', 'argocd']).stderr).toBe('');
}, BUILD_TIMEOUT_MS);
afterAll(async () => {
  await plane?.stop();
  rmSync(folder, { recursive: true, force: true });
});

function run(program: string, args: readonly string[]) {
  const env = { ...process.env, HOME: folder, KUBECONFIG: plane.kubeconfig };
  return spawnSync(program, args, { encoding: 'utf8', env, cwd: folder, timeout: 250_000 });
}

function installDefinitions(): void {
  const files = PRODUCTS.flatMap(({ module, sum, files: names }) => {
    const source = downloadGoModule(module, sum);
    return names.map((name) => join(source, name));
  });
  const args = files.flatMap((file) => ['-f', file]);
  const applied = run(kubectlProgram, ['apply', '--server-side', ...args]);
  expect(applied.stdout.match(/ serverside-applied$/gm), applied.stderr).toHaveLength(files.length);
  const condition = ['--for=condition=Established', '--timeout=240s'];
  const waited = run(kubectlProgram, ['wait', 'crd', '--all', ...condition]);
  expect(`exit ${waited.status} ${waited.stderr}`).toBe('exit 0 ');
}

function helm(values: readonly string[], release = 'pvescaler') {
  const settings = values.flatMap((value) => ['--set', value]);
  const options = ['--namespace', 'pvescaler', '--kube-version', '1.36.2'];
  return run(helmProgram, ['template', release, CHART, ...options, ...settings]);
}

function render(values: readonly string[], release?: string): readonly Manifest[] {
  const { status, stdout, stderr } = helm(values, release);
  expect(`exit ${status} ${stderr}`).toBe('exit 0 ');
  return parseManifests(stdout);
}

function parseManifests(text: string): readonly Manifest[] {
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((one) => one !== null);
}

function find(manifests: readonly Manifest[], kind: string): Manifest {
  const [found, ...others] = manifests.filter((one) => one.kind === kind);
  if (found === undefined || others.length > 0) throw new Error(`not exactly one ${kind}`);
  return found;
}

/** Everything that the API server refuses. */
function dryRun(manifests: readonly Manifest[]): string {
  const file = join(folder, 'objects.yaml');
  writeFileSync(file, manifests.map((one) => JSON.stringify(one)).join('\n---\n'));
  const args = ['apply', '--server-side', '--dry-run=server', '--validate=strict', '-f', file];
  const { stdout, stderr } = run(kubectlProgram, args);
  // One line for each object that was accepted; a warning of the Pod Security profile is on stderr.
  const accepted = stdout.match(/ \(server dry run\)$/gm)?.length ?? 0;
  const { length } = manifests;
  return accepted === length ? stderr : `${accepted} of ${length} accepted\n${stderr}`;
}

describe('the Helm chart', () => {
  it.each(['standalone', 'externalgrpc'])(
    'passes a server-side dry run in mode %s, with its defaults and with every option',
    (mode) => {
      for (const values of [[], EVERYTHING, REPLICAS])
        expect(dryRun(render([`mode=${mode}`, ...values]))).toBe('');
    },
  );

  it('is refused by the dry run when a field is misspelled', () => {
    const [service] = render([]).filter(({ kind }) => kind === 'Service');
    const wrong = { ...service, spec: { prots: [] } } as unknown as Manifest;
    expect(dryRun([wrong])).toContain('.spec.prots: field not declared in schema');
  });

  it.each(['standalone', 'externalgrpc'])('contains a valid config for mode %s', (mode) => {
    const manifests = render([`mode=${mode}`, 'secrets.dashboardToken=pvescaler-dashboard']);
    const file = join(folder, 'config.yaml');
    writeFileSync(file, find(manifests, 'ConfigMap')['data']['config.yaml']);
    const { exitCode, err } = pvescaler(['config', 'validate', file]);
    expect({ exitCode, errors: /error/i.exec(err)?.input }).toEqual({ exitCode: 0 });
    const { spec } = find(manifests, 'Deployment')['spec'].template;
    const [container] = spec.containers;
    const mounts = container.volumeMounts.map(({ mountPath }: Loose) => `${mountPath}/`);
    const files = readFileSettings(find(manifests, 'ConfigMap')['data']['config.yaml']);
    expect(files.length).toBeGreaterThan(2);
    for (const path of files)
      expect(
        mounts.some((mount: string) => path.startsWith(mount)),
        path,
      ).toBe(true);
    const ports = container.ports.map(({ name }: Loose) => name);
    expect(ports).toEqual(mode === 'standalone' ? ['health'] : ['grpc', 'grpc-expander', 'health']);
  });

  it('grants the rights of the manifests and no others', () => {
    const objects = render([]).filter(({ kind }) => /Role|Policy|ServiceAccount/.test(kind));
    const own = objects.filter(({ kind }) => kind !== 'NetworkPolicy');
    const shipped = ['rbac', 'admission-policy']
      .flatMap((name) => readManifests(`deploy/manifests/${name}.yaml`))
      .filter(({ kind }) => kind !== 'Namespace');
    expect(own.map(withoutLabels).toSorted()).toEqual(shipped.map(withoutLabels).toSorted());
  });

  it('grants the rights for records in the cluster only with them', () => {
    const roles = render(REPLICAS).filter(({ metadata }) => metadata.name === 'pvescaler-state');
    const shipped = readManifests('deploy/kubernetes-state/role.yaml');
    expect(roles.map(withoutLabels).toSorted()).toEqual(shipped.map(withoutLabels).toSorted());
  });

  it('runs several replicas on different nodes, which a rolling update replaces one by one', () => {
    const { replicas, strategy, template } = find(render(REPLICAS), 'Deployment')['spec'];
    expect({ replicas, strategy }).toEqual({
      replicas: 3,
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
    });
    expect(template.spec.affinity.podAntiAffinity).toBeDefined();
    const config = find(render(REPLICAS), 'ConfigMap')['data']['config.yaml'];
    expect(config).toMatch(/^state:\n {2}kubernetes:\n {4}namespace: pvescaler$/m);
  });

  it('names all objects after its release', () => {
    const objects = render(['secrets.readable={one}', ...REPLICAS], 'second');
    expect(objects.filter(({ metadata }) => !metadata.name.startsWith('second'))).toEqual([]);
    expect(dryRun(objects)).toBe('');
  });

  it('has each object once in any namespace', () => {
    const options = ['--namespace', 'kube-system', '--kube-version', '1.36.2'];
    const { stdout } = run(helmProgram, ['template', 'pvescaler', CHART, ...options]);
    const keys = parseManifests(stdout).map(
      ({ kind, metadata: { namespace, name } }) => `${kind} ${namespace ?? ''}/${name}`,
    );
    expect(keys.toSorted()).toEqual([...new Set(keys)].toSorted());
  });

  it('never runs on the machines of a pool, whatever its label', () => {
    const pools = ['config.pools[0].name=a', 'config.pools[0].groupLabel=example.com/pool'];
    const { affinity } = find(render(pools), 'Deployment')['spec'].template.spec;
    const [term] =
      affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms;
    expect(term.matchExpressions).toContainEqual({
      key: 'example.com/pool',
      operator: 'DoesNotExist',
    });
  });

  it.each([
    ['mode=other', '/mode'],
    ['wrong=1', "'wrong' not allowed"],
    ['config.mode=standalone', '/config/mode'],
    ['image.digest=latest', '/image/digest'],
    ['mode=externalgrpc,secrets.serverTls=', '/secrets/serverTls'],
    ['replicas=2', '/replicas'],
    ['state=kubernetes,persistence.enabled=true', '/persistence/enabled'],
  ])('refuses %s', (value, message) => {
    const { status, stderr } = helm([value]);
    expect(status).toBe(1);
    expect(stderr).toContain(message);
  });

  it('passes helm lint, and is packed under the version of the program', () => {
    const lint = run(helmProgram, ['lint', '--strict', '--kube-version', '1.36.2', CHART]);
    expect(lint.stdout).toContain('0 chart(s) failed');
    const { version } = JSON.parse(readRepoFile('package.json'));
    const packed = run(helmProgram, ['package', CHART, '--destination', folder]);
    expect(packed.stdout).toContain(`pvescaler-${version}.tgz`);
  });
});

/** Values of keys that name a file below /run. */
function readFileSettings(config: string): readonly string[] {
  return [...config.matchAll(/: (\/run\/\S+)$/gm)].map(([, path = '']) => path);
}

function withoutLabels({ metadata, ...rest }: Manifest): string {
  const { name, namespace } = metadata;
  return JSON.stringify({ name, namespace, ...rest });
}

describe('the Kustomize base', () => {
  it.each([
    { components: [] },
    { components: ['standalone'] },
    { components: ['persistent-state', 'secret-ref'] },
    { components: ['standalone', 'persistent-state', 'secret-ref'] },
    { components: ['kubernetes-state'] },
    { components: ['standalone', 'kubernetes-state', 'secret-ref'] },
  ])('passes a server-side dry run with components $components', ({ components }) => {
    const base = join(folder, 'base');
    rmSync(base, { recursive: true, force: true });
    cpSync(join(root, 'deploy'), base, { recursive: true });
    const list = components.length === 0 ? '' : `components: [${components.join(', ')}]\n`;
    writeFileSync(
      join(base, 'kustomization.yaml'),
      readRepoFile('deploy/kustomization.yaml') + list,
    );
    const { status, stdout, stderr } = run(kubectlProgram, ['kustomize', base]);
    expect(`exit ${status} ${stderr}`).toBe('exit 0 ');
    const manifests = parseManifests(stdout);
    expect(dryRun(manifests)).toBe('');
    const isStandalone = components.some((name) => name === 'standalone');
    expect(/50051|pvescaler-server-tls/.test(stdout)).toBe(!isStandalone);
    expect(find(manifests, 'ConfigMap')['data']['config.yaml']).toContain(
      `mode: ${isStandalone ? 'standalone' : 'externalgrpc'}\n`,
    );
  });
});

describe('the sample workloads', () => {
  it.each(['echoserver', 'batch-job', 'dedicated-pool'])('%s passes a dry run', (name) => {
    expect(dryRun(readManifests(`deploy/samples/${name}.yaml`))).toBe('');
  });
});

describe('objects for other products', () => {
  const objects = [
    'argocd/application',
    'cert-manager/certificates',
    'monitoring/prometheus-rule',
    'monitoring/service-monitor',
  ];

  it.each(objects)('%s passes a dry run', (name) => {
    expect(dryRun(readManifests(`deploy/${name}.yaml`))).toBe('');
  });

  it.each(objects)('%s is refused by the dry run when a field is misspelled', (name) => {
    const [first] = readManifests(`deploy/${name}.yaml`);
    const wrong = { ...first, spec: { ...first?.['spec'], wrong: true } } as unknown as Manifest;
    expect(dryRun([wrong])).toContain('.spec.wrong: field not declared in schema');
  });
});
