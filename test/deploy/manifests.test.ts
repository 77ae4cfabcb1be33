// SPDX-License-Identifier: Apache-2.0
// Checks that the files in deploy/ are consistent: names, ports, paths, mounts, certificates and configuration.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { createHealthApp } from '../../src/http/index.ts';
import { SERVICE_ACCOUNT } from '../../src/kubernetes/index.ts';
import { durationToMs, parseDuration } from '../../src/model/duration.ts';
import { pvescaler, root } from '../support/pvescaler.ts';
import { type Loose, listDeployFiles, readManifest, readRepoFile, readYaml } from './manifests.ts';

const CERTIFICATES = 'deploy/cert-manager/certificates.yaml';
const SERVER_CONFIG = 'deploy/server/config.yaml';

/** The files of a component of Kustomize. */
function listComponent(folder: string): readonly string[] {
  const {
    resources = [],
    patches = [],
    configMapGenerator = [],
  } = readYaml(`deploy/${folder}/kustomization.yaml`);
  const names = [
    'kustomization.yaml',
    ...resources,
    ...patches.flatMap(({ path }: Loose) => path ?? []),
    ...configMapGenerator.flatMap((one: Loose) => one.files),
  ];
  return names.map((name) => `${folder}/${name}`);
}

/** The port of an address such as `:50051` or `0.0.0.0:8080`. */
function portOf(address: string): number {
  return Number(address.split(':').at(-1));
}

function effectiveConfig(): Loose {
  const { out, exitCode } = pvescaler(['config', 'show', join(root, SERVER_CONFIG)]);
  expect(exitCode).toBe(0);
  return parse(out);
}

const deployment = readManifest('deploy/server/deployment.yaml', 'Deployment');
const service = readManifest('deploy/server/service.yaml', 'Service');
const pod = deployment['spec'].template.spec;
const [container] = pod.containers;
const config = readYaml(SERVER_CONFIG);
const kustomization = readYaml('deploy/kustomization.yaml');
const values = readYaml('deploy/cluster-autoscaler/values.yaml');
const cloudConfig = readManifest('deploy/cluster-autoscaler/cloud-config.yaml', 'ConfigMap');
const serverCertificate = readManifest(CERTIFICATES, 'Certificate', 'pvescaler-server');
const clientCertificate = readManifest(CERTIFICATES, 'Certificate', 'cluster-autoscaler-client');
const example = readManifest('deploy/server/proxmox-secret.example.yaml', 'Secret');

describe('files in deploy/', () => {
  it.each(listDeployFiles())('%s is valid YAML', (name) => {
    const documents = parseAllDocuments(readRepoFile(`deploy/${name}`), { strict: true });
    for (const document of Array.isArray(documents) ? documents : []) {
      expect(document.errors).toEqual([]);
      expect(document.warnings).toEqual([]);
      expect(document.toJS()).toBeTypeOf('object');
    }
    expect(documents).not.toHaveLength(0);
  });

  it('are all part of the chart, applied by kustomize or by a command of a guide', () => {
    const applied = [
      'kustomization.yaml',
      ...['standalone', 'persistent-state', 'kubernetes-state', 'secret-ref'].flatMap(
        listComponent,
      ),
      ...kustomization.resources,
      ...kustomization.configMapGenerator.flatMap((one: Loose) => one.files),
      'chart/Chart.yaml',
      // The chart has the same files.
      ...kustomization.resources
        .filter((name: string) => name.startsWith('crds/'))
        .map((name: string) => `chart/${name}`),
    ];
    const guide = ['cluster-autoscaler', 'in-cluster']
      .map((name) => readRepoFile(`docs/guides/${name}.md`))
      .join('\n');
    const others = listDeployFiles().filter((name) => !applied.includes(name));
    expect(others.filter((name) => !guide.includes(`deploy/${name}`))).toEqual([]);
    expect(applied.filter((name) => !existsSync(join(root, 'deploy', name)))).toEqual([]);
  });

  it('are in the namespace of the service account without a namespace transformer', () => {
    for (const one of [deployment, service, cloudConfig, serverCertificate, example])
      expect(one.metadata.namespace).toBe(SERVICE_ACCOUNT.namespace);
    expect(kustomization.configMapGenerator[0].namespace).toBe(SERVICE_ACCOUNT.namespace);
    expect(kustomization.namespace).toBeUndefined();
    expect(pod.serviceAccountName).toBe(SERVICE_ACCOUNT.name);
  });

  it('name the current release', () => {
    const { version } = JSON.parse(readRepoFile('package.json'));
    expect(kustomization.images).toMatchObject([{ name: container.image, newTag: version }]);
    expect(readYaml('deploy/chart/Chart.yaml')).toMatchObject({ version, appVersion: version });
    const application = readManifest('deploy/argocd/application.yaml', 'Application');
    expect(application['spec'].source.targetRevision).toBe(`v${version}`);
  });
});

describe('the server config', () => {
  it.each([
    ['externalgrpc', SERVER_CONFIG],
    ['standalone', 'deploy/standalone/config.yaml'],
  ])('is valid for mode %s', (mode, file) => {
    const { exitCode, err } = pvescaler(['config', 'validate', join(root, file)]);
    expect({ exitCode, errors: /error/i.exec(err)?.input }).toEqual({ exitCode: 0 });
    expect(readYaml(file).mode).toBe(mode);
  });

  it('is mounted at the default path', () => {
    const mount = mountOf('config');
    expect(`${mount.mountPath}/config.yaml`).toBe('/etc/pvescaler/config.yaml');
    expect(volumeOf('config').configMap.name).toBe(kustomization.configMapGenerator[0].name);
    expect(container.args).toEqual(['serve']);
  });

  it('names files of mounted Secrets', () => {
    const { tls } = config.grpc;
    expectFiles([tls.cert, tls.key, tls.clientCa], 'tls', ['tls.crt', 'tls.key', 'ca.crt']);
    const { token, tls: api } = config.proxmox.dc1;
    expectFiles([token.secretFile, api.caFile], 'proxmox', Object.keys(example['stringData']));
    expect(volumeOf('tls').secret.secretName).toBe(serverCertificate['spec'].secretName);
    expect(volumeOf('proxmox').secret.secretName).toBe(example.metadata.name);
  });

  it('stores the database on the state volume', () => {
    expect(dirname(effectiveConfig().state.path)).toBe(mountOf('state').mountPath);
    const patch = readManifest('deploy/persistent-state/use-claim.yaml', 'Deployment');
    const claim = readManifest('deploy/persistent-state/claim.yaml', 'PersistentVolumeClaim');
    expect(patch['spec'].template.spec.volumes).toEqual([
      {
        name: 'state',
        emptyDir: null,
        persistentVolumeClaim: { claimName: claim.metadata.name },
      },
    ]);
  });
});

function volumeOf(name: string): Loose {
  return pod.volumes.find((volume: Loose) => volume.name === name);
}

function mountOf(name: string): Loose {
  return container.volumeMounts.find((mount: Loose) => mount.name === name);
}

function expectFiles(paths: readonly string[], volume: string, keys: readonly string[]): void {
  const { mountPath } = mountOf(volume);
  expect(paths.toSorted()).toEqual(keys.map((key) => `${mountPath}/${key}`).toSorted());
}

describe('the server deployment', () => {
  const ports = new Map<string, number>(
    container.ports.map((port: Loose) => [port.name, port.containerPort]),
  );

  it('has the same ports in config, pod, Service and image', () => {
    expect(Object.fromEntries(ports)).toEqual({
      grpc: portOf(config.grpc.listen),
      'grpc-expander': portOf(config.grpc.expander.listen),
      health: portOf(config.http.health),
    });
    for (const { port, targetPort } of service['spec'].ports)
      expect(ports.get(targetPort)).toBe(port);
    expect(service['spec'].ports).toHaveLength(ports.size);
    const exposed = /^EXPOSE (.*)$/m.exec(readRepoFile('Dockerfile'))?.[1]?.split(' ').map(Number);
    expect(exposed?.toSorted()).toEqual([...ports.values()].toSorted());
  });

  it('is selected by its Service and ServiceMonitor', () => {
    const { labels } = deployment['spec'].template.metadata;
    const monitor = readManifest('deploy/monitoring/service-monitor.yaml', 'ServiceMonitor');
    expect(labels).toMatchObject(deployment['spec'].selector.matchLabels);
    expect(labels).toMatchObject(service['spec'].selector);
    expect(service.metadata).toMatchObject({ labels: monitor['spec'].selector.matchLabels });
    expect(ports.has(monitor['spec'].endpoints[0].port)).toBe(true);
  });

  it('has probes and monitoring at paths that exist', async () => {
    const monitor = readManifest('deploy/monitoring/service-monitor.yaml', 'ServiceMonitor');
    const app = createHealthApp({
      health: () => ({ healthy: true, problems: [] }),
      readiness: () => ({ ready: false, waitingFor: [], limits: [], leader: false }),
      metrics: { contentType: 'text/plain', read: () => Promise.resolve('') },
    });
    const status = async (path: string) => (await app.request(path)).status;
    const { livenessProbe, readinessProbe } = container;
    expect(await status(livenessProbe.httpGet.path)).toBe(200);
    expect(await status(readinessProbe.httpGet.path)).toBe(503);
    expect(await status(monitor['spec'].endpoints[0].path)).toBe(200);
    expect([livenessProbe.httpGet.port, readinessProbe.httpGet.port]).toEqual(['health', 'health']);
  });

  it('accepts gRPC only from the Cluster Autoscaler', () => {
    const { spec, metadata } = readManifest('deploy/server/network-policy.yaml', 'NetworkPolicy');
    expect(metadata.namespace).toBe(SERVICE_ACCOUNT.namespace);
    expect(spec.podSelector).toEqual(deployment['spec'].selector);
    expect(spec.policyTypes).toEqual(['Ingress']);
    const name = `${values.cloudProvider}-cluster-autoscaler`;
    const numbers = (...names: readonly string[]) =>
      names.map((one) => ({ protocol: 'TCP', port: ports.get(one) }));
    expect(spec.ingress).toEqual([
      {
        from: [{ podSelector: { matchLabels: { 'app.kubernetes.io/name': name } } }],
        ports: numbers('grpc', 'grpc-expander'),
      },
      { ports: numbers('health') },
    ]);
  });

  it('runs once, and never on a node that it manages', () => {
    expect(deployment['spec']).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } });
    const { groupLabel } = effectiveConfig().pools[0];
    for (const { nodeAffinity } of [pod.affinity, values.affinity])
      expect(nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution).toEqual({
        nodeSelectorTerms: [{ matchExpressions: [{ key: groupLabel, operator: 'DoesNotExist' }] }],
      });
    expect(values.tolerations).toEqual(pod.tolerations);
  });

  it('complies with the restricted pod security profile', () => {
    expect(pod.securityContext).toMatchObject({
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    const user = `${pod.securityContext.runAsUser}:${pod.securityContext.runAsGroup}`;
    expect(readRepoFile('Dockerfile')).toContain(`\nUSER ${user}\n`);
  });
});

describe('the Cluster Autoscaler deployment', () => {
  const [[fileName, text]] = Object.entries<string>(cloudConfig['data']) as [[string, string]];
  const cloud = parse(text);

  function mountPath(volume: string): string {
    return values.extraVolumeMounts.find((mount: Loose) => mount.name === volume).mountPath;
  }

  it('connects to a name in the certificate at the port of the Service', () => {
    const { name, namespace } = service.metadata;
    const [host, port] = cloud.address.split(':');
    expect(host).toBe(`${name}.${namespace}.svc`);
    expect(Number(port)).toBe(service['spec'].ports[0].port);
    expect(serverCertificate['spec'].dnsNames).toContain(host);
    expect(serverCertificate['spec'].usages).toContain('server auth');
  });

  it('presents a certificate that the server accepts', () => {
    const { commonName, dnsNames, usages, secretName } = clientCertificate['spec'];
    expect(config.grpc.tls.allow).toEqual([commonName]);
    expect(dnsNames).toEqual([commonName]);
    expect(usages).toContain('client auth');
    expect(values.extraVolumes).toContainEqual({ name: 'client-tls', secret: { secretName } });
    expect(clientCertificate['spec'].issuerRef).toEqual(serverCertificate['spec'].issuerRef);
  });

  it('has its files at the configured paths', () => {
    const { cert, key, cacert } = cloud;
    const folder = mountPath('client-tls');
    expect([cert, key, cacert]).toEqual(
      ['tls.crt', 'tls.key', 'ca.crt'].map((name) => `${folder}/${name}`),
    );
    expect(values.extraArgs['cloud-config']).toBe(`${mountPath('cloud-config')}/${fileName}`);
    expect(values.extraVolumes).toContainEqual({
      name: 'cloud-config',
      configMap: { name: cloudConfig.metadata.name },
    });
    expect(values.cloudProvider).toBe('externalgrpc');
    expect(values.autoDiscovery.clusterName).toBeTruthy();
  });

  it('waits for a node at least as long as the provision timeout of each pool', () => {
    const timeoutMs = milliseconds(values.extraArgs['max-node-provision-time']);
    for (const { provisionTimeout } of effectiveConfig().pools)
      expect(timeoutMs).toBeGreaterThanOrEqual(milliseconds(provisionTimeout));
  });
});

function milliseconds(text: string): number {
  const parsed = parseDuration(text);
  if (!parsed.ok) throw new Error(`${text} is not a valid duration`);
  return durationToMs(parsed.value);
}
