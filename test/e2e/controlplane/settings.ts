// SPDX-License-Identifier: Apache-2.0
// The command lines and files of the four programs.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Authority,
  encodeKeyPem,
  generateKeyPair,
  type KeyAndCertificate,
} from './certificate-authority.ts';

export interface ControlPlaneSettings {
  readonly folder: string;
  readonly authority: Authority;
  readonly ports: { readonly api: number; readonly etcd: number; readonly etcdPeer: number };
  /** Time without a heartbeat until a node is NotReady. */
  readonly nodeMonitorGraceSeconds: number;
  readonly nameForGuests: string | undefined;
  /** Rules of the audit policy; absent = no audit log. */
  readonly auditRules: readonly object[] | undefined;
}

export function auditLogPath({ folder }: Pick<ControlPlaneSettings, 'folder'>): string {
  return join(folder, 'audit.log');
}

export const LOOPBACK = '127.0.0.1';

export function apiServerUrl({ ports }: ControlPlaneSettings): string {
  return `https://${LOOPBACK}:${ports.api}`;
}

export function kubeconfigText(
  server: string,
  caPem: string,
  user: KeyAndCertificate | { readonly token: string },
): string {
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const credentials =
    'token' in user
      ? { token: user.token }
      : {
          'client-certificate-data': base64(user.certPem),
          'client-key-data': base64(user.keyPem),
        };
  // JSON is YAML.
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    clusters: [{ name: 'test', cluster: { server, 'certificate-authority-data': base64(caPem) } }],
    users: [{ name: 'test', user: credentials }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
  });
}

export function etcdArgs({ folder, ports }: ControlPlaneSettings): string[] {
  const client = `http://${LOOPBACK}:${ports.etcd}`;
  const peer = `http://${LOOPBACK}:${ports.etcdPeer}`;
  return [
    `--data-dir=${join(folder, 'etcd')}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
    // Nothing is kept after the test, and a slow disk must not delay it.
    '--unsafe-no-fsync',
    '--log-level=warn',
  ];
}

/** Writes the files of the API server and returns its arguments. */
export function apiServerArgs(site: ControlPlaneSettings): string[] {
  const { authority, ports } = site;
  const serving = authority.server();
  const serviceAccounts = generateKeyPair();
  const file = (name: string, text: string) => writeSecret(site, name, text);
  const key = file('service-accounts.key', encodeKeyPem(serviceAccounts.privateKey));
  const ca = file('ca.crt', authority.certPem);
  file('ca.key', authority.keyPem);
  return [
    `--etcd-servers=http://${LOOPBACK}:${ports.etcd}`,
    `--bind-address=${LOOPBACK}`,
    `--advertise-address=${LOOPBACK}`,
    `--secure-port=${ports.api}`,
    '--endpoint-reconciler-type=none',
    `--tls-cert-file=${file('server.crt', serving.certPem)}`,
    `--tls-private-key-file=${file('server.key', serving.keyPem)}`,
    `--client-ca-file=${ca}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${key}`,
    `--service-account-signing-key-file=${key}`,
    '--service-cluster-ip-range=10.96.0.0/16',
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    '--enable-bootstrap-token-auth',
    '--allow-privileged',
    ...auditArgs(site),
  ];
}

function auditArgs(site: ControlPlaneSettings): string[] {
  const { auditRules: rules } = site;
  if (rules === undefined) return [];
  const omitStages = ['RequestReceived'];
  const policy = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy', omitStages, rules };
  return [
    `--audit-policy-file=${writeSecret(site, 'audit-policy.json', JSON.stringify(policy))}`,
    `--audit-log-path=${auditLogPath(site)}`,
    '--audit-log-mode=blocking-strict',
  ];
}

export function controllerManagerArgs(site: ControlPlaneSettings): string[] {
  const { folder, authority } = site;
  const user = 'system:kube-controller-manager';
  const config = kubeconfigText(
    apiServerUrl(site),
    authority.certPem,
    authority.client({ commonName: user }),
  );
  return [
    `--kubeconfig=${writeSecret(site, 'controller-manager.conf', config)}`,
    '--secure-port=0',
    '--leader-elect=false',
    '--use-service-account-credentials',
    `--service-account-private-key-file=${join(folder, 'service-accounts.key')}`,
    `--root-ca-file=${join(folder, 'ca.crt')}`,
    `--cluster-signing-cert-file=${join(folder, 'ca.crt')}`,
    `--cluster-signing-key-file=${join(folder, 'ca.key')}`,
    '--controllers=*,bootstrap-signer-controller,token-cleaner-controller',
    '--kube-api-qps=500',
    '--kube-api-burst=500',
    '--node-monitor-period=1s',
    `--node-monitor-grace-period=${site.nodeMonitorGraceSeconds}s`,
  ];
}

export function schedulerArgs(site: ControlPlaneSettings): string[] {
  const { authority } = site;
  const client = authority.client({ commonName: 'system:kube-scheduler' });
  const kubeconfig = kubeconfigText(apiServerUrl(site), authority.certPem, client);
  const configuration = {
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'KubeSchedulerConfiguration',
    clientConnection: { kubeconfig: writeSecret(site, 'scheduler.conf', kubeconfig) },
    leaderElection: { leaderElect: false },
    podInitialBackoffSeconds: 1,
    podMaxBackoffSeconds: 1,
  };
  const file = writeSecret(site, 'scheduler.json', JSON.stringify(configuration));
  return [`--config=${file}`, '--secure-port=0'];
}

function writeSecret({ folder }: ControlPlaneSettings, name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}
