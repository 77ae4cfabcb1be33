// SPDX-License-Identifier: Apache-2.0
// What deploy/ holds fits together: names, ports, paths, mounts, certificates, and the config that is served.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { healthApp } from '../../src/http/index.ts';
import { ACCOUNT } from '../../src/kubernetes/index.ts';
import { durationMs, parseDuration } from '../../src/model/duration.ts';
import { pvescaler, root } from '../support/pvescaler.ts';
import { deployedFiles, type Loose, manifest, textOf, yamlOf } from './manifests.ts';

const CERTIFICATES = 'deploy/cert-manager/certificates.yaml';
const SERVER_CONFIG = 'deploy/server/config.yaml';

/** Of an address such as `:50051` or `0.0.0.0:8080`. */
function portOf(address: string): number {
  return Number(address.split(':').at(-1));
}

function effectiveConfig(): Loose {
  const { out, exitCode } = pvescaler(['config', 'show', join(root, SERVER_CONFIG)]);
  expect(exitCode).toBe(0);
  return parse(out);
}

const deployment = manifest('deploy/server/deployment.yaml', 'Deployment');
const service = manifest('deploy/server/service.yaml', 'Service');
const pod = deployment['spec'].template.spec;
const [container] = pod.containers;
const config = yamlOf(SERVER_CONFIG);
const kustomization = yamlOf('deploy/kustomization.yaml');
const values = yamlOf('deploy/cluster-autoscaler/values.yaml');
const cloudConfig = manifest('deploy/cluster-autoscaler/cloud-config.yaml', 'ConfigMap');
const serverCertificate = manifest(CERTIFICATES, 'Certificate', 'pvescaler-server');
const clientCertificate = manifest(CERTIFICATES, 'Certificate', 'cluster-autoscaler-client');
const example = manifest('deploy/server/proxmox-secret.example.yaml', 'Secret');

describe('the files of deploy/', () => {
  it.each(deployedFiles())('%s is YAML without a fault', (name) => {
    const documents = parseAllDocuments(textOf(`deploy/${name}`), { strict: true });
    for (const document of Array.isArray(documents) ? documents : []) {
      expect(document.errors).toEqual([]);
      expect(document.warnings).toEqual([]);
      expect(document.toJS()).toBeTypeOf('object');
    }
    expect(documents).not.toHaveLength(0);
  });

  it('are all applied by kustomize, or by a command of the guide', () => {
    const component = yamlOf('deploy/persistent-state/kustomization.yaml');
    const inComponent = [...component.resources, component.patches[0].path];
    const applied = [
      'kustomization.yaml',
      'persistent-state/kustomization.yaml',
      ...inComponent.map((name: string) => `persistent-state/${name}`),
      ...kustomization.resources,
      ...kustomization.configMapGenerator.flatMap((one: Loose) => one.files),
    ];
    const guide = textOf('docs/guides/cluster-autoscaler.md');
    const others = deployedFiles().filter((name) => !applied.includes(name));
    expect(others.filter((name) => !guide.includes(`deploy/${name}`))).toEqual([]);
    expect(applied.filter((name) => !existsSync(join(root, 'deploy', name)))).toEqual([]);
  });

  it('are in the namespace of the account, which a transformer must not enforce', () => {
    for (const one of [deployment, service, cloudConfig, serverCertificate, example])
      expect(one.metadata.namespace).toBe(ACCOUNT.namespace);
    expect(kustomization.configMapGenerator[0].namespace).toBe(ACCOUNT.namespace);
    expect(kustomization.namespace).toBeUndefined();
    expect(pod.serviceAccountName).toBe(ACCOUNT.name);
  });

  it('name the release that this is', () => {
    const { version } = JSON.parse(textOf('package.json'));
    expect(kustomization.images).toMatchObject([{ name: container.image, newTag: version }]);
  });
});

describe('the config of the server', () => {
  it('is valid', () => {
    const { exitCode, err } = pvescaler(['config', 'validate', join(root, SERVER_CONFIG)]);
    expect({ exitCode, errors: /error/i.exec(err)?.input }).toEqual({ exitCode: 0 });
    expect(config.mode).toBe('externalgrpc');
  });

  it('is mounted where the server looks for it', () => {
    const mount = mountOf('config');
    expect(`${mount.mountPath}/config.yaml`).toBe('/etc/pvescaler/config.yaml');
    expect(volumeOf('config').configMap.name).toBe(kustomization.configMapGenerator[0].name);
    expect(container.args).toEqual(['serve']);
  });

  it('names files of Secrets that are mounted', () => {
    const { tls } = config.grpc;
    expectFiles([tls.cert, tls.key, tls.clientCa], 'tls', ['tls.crt', 'tls.key', 'ca.crt']);
    const { token, tls: api } = config.proxmox.dc1;
    expectFiles([token.secretFile, api.caFile], 'proxmox', Object.keys(example['stringData']));
    expect(volumeOf('tls').secret.secretName).toBe(serverCertificate['spec'].secretName);
    expect(volumeOf('proxmox').secret.secretName).toBe(example.metadata.name);
  });

  it('keeps its database on the volume for it', () => {
    expect(dirname(effectiveConfig().state.path)).toBe(mountOf('state').mountPath);
    const patch = manifest('deploy/persistent-state/use-claim.yaml', 'Deployment');
    const claim = manifest('deploy/persistent-state/claim.yaml', 'PersistentVolumeClaim');
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

describe('the server', () => {
  const ports = new Map<string, number>(
    container.ports.map((port: Loose) => [port.name, port.containerPort]),
  );

  it('listens where pod, Service and image say', () => {
    expect(Object.fromEntries(ports)).toEqual({
      grpc: portOf(config.grpc.listen),
      'grpc-expander': portOf(config.grpc.expander.listen),
      health: portOf(config.http.health),
    });
    for (const { port, targetPort } of service['spec'].ports)
      expect(ports.get(targetPort)).toBe(port);
    expect(service['spec'].ports).toHaveLength(ports.size);
    const exposed = /^EXPOSE (.*)$/m.exec(textOf('Dockerfile'))?.[1]?.split(' ').map(Number);
    expect(exposed?.toSorted()).toEqual([...ports.values()].toSorted());
  });

  it('is found by its Service and its monitor', () => {
    const { labels } = deployment['spec'].template.metadata;
    const monitor = manifest('deploy/monitoring/service-monitor.yaml', 'ServiceMonitor');
    expect(labels).toMatchObject(deployment['spec'].selector.matchLabels);
    expect(labels).toMatchObject(service['spec'].selector);
    expect(service.metadata).toMatchObject({ labels: monitor['spec'].selector.matchLabels });
    expect(ports.has(monitor['spec'].endpoints[0].port)).toBe(true);
  });

  it('is asked at paths that it serves', async () => {
    const monitor = manifest('deploy/monitoring/service-monitor.yaml', 'ServiceMonitor');
    const app = healthApp({
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

  it('is reached by the Cluster Autoscaler only, but for health and metrics', () => {
    const { spec, metadata } = manifest('deploy/server/network-policy.yaml', 'NetworkPolicy');
    expect(metadata.namespace).toBe(ACCOUNT.namespace);
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

  it('never runs twice, nor on a machine of its own', () => {
    expect(deployment['spec']).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } });
    const { groupLabel } = effectiveConfig().pools[0];
    for (const { nodeAffinity } of [pod.affinity, values.affinity])
      expect(nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution).toEqual({
        nodeSelectorTerms: [{ matchExpressions: [{ key: groupLabel, operator: 'DoesNotExist' }] }],
      });
    expect(values.tolerations).toEqual(pod.tolerations);
  });

  it('has no more rights on its node than the restricted profile allows', () => {
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
    expect(textOf('Dockerfile')).toContain(`\nUSER ${user}\n`);
  });
});

describe('the Cluster Autoscaler', () => {
  const [[fileName, text]] = Object.entries<string>(cloudConfig['data']) as [[string, string]];
  const cloud = parse(text);

  function mountPath(volume: string): string {
    return values.extraVolumeMounts.find((mount: Loose) => mount.name === volume).mountPath;
  }

  it('dials a name of the certificate, at the port of the Service', () => {
    const { name, namespace } = service.metadata;
    const [host, port] = cloud.address.split(':');
    expect(host).toBe(`${name}.${namespace}.svc`);
    expect(Number(port)).toBe(service['spec'].ports[0].port);
    expect(serverCertificate['spec'].dnsNames).toContain(host);
    expect(serverCertificate['spec'].usages).toContain('server auth');
  });

  it('shows a certificate that the server lets in', () => {
    const { commonName, dnsNames, usages, secretName } = clientCertificate['spec'];
    expect(config.grpc.tls.allow).toEqual([commonName]);
    expect(dnsNames).toEqual([commonName]);
    expect(usages).toContain('client auth');
    expect(values.extraVolumes).toContainEqual({ name: 'client-tls', secret: { secretName } });
    expect(clientCertificate['spec'].issuerRef).toEqual(serverCertificate['spec'].issuerRef);
  });

  it('finds its files where they are mounted', () => {
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

  it('waits for a machine as long as the pools do', () => {
    const waits = milliseconds(values.extraArgs['max-node-provision-time']);
    for (const { provisionTimeout } of effectiveConfig().pools)
      expect(waits).toBeGreaterThanOrEqual(milliseconds(provisionTimeout));
  });
});

function milliseconds(text: string): number {
  const parsed = parseDuration(text);
  if (!parsed.ok) throw new Error(`${text} is no duration`);
  return durationMs(parsed.value);
}
