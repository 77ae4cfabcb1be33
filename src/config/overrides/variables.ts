// SPDX-License-Identifier: Apache-2.0
// Every environment variable that has a say in the config, once. Ours come first: where two stand for the
// same key, the first in this table counts.
import {
  asBoolean,
  asEndpoint,
  asList,
  asListenHost,
  asListenPort,
  asLogLevel,
  asMode,
  asSeconds,
  asSecretInVariable,
  asSingle,
  asText,
  asVariableName,
} from './conversions.ts';
import type { Setting } from './setting.ts';

const REGION = ['proxmox', '<region>'] as const;
const POOLS = ['pools', '*'] as const;

// A region logs in in one way, and checks certificates in one way or not at all.
const noPassword = () => ['user', 'passwordFile', 'passwordEnv', 'passwordRef'];
const noToken = () => ['token'];
const noTrust = (insecure: unknown) =>
  insecure === true ? ['tls.caFile', 'tls.fingerprints'] : [];

const OURS: readonly Setting[] = [
  { name: 'PVESCALER_MODE', target: ['mode'], convert: asMode, meaning: 'the mode' },
  {
    name: 'PVESCALER_STATE_PATH',
    target: ['state', 'path'],
    convert: asText,
    meaning: 'the state database',
  },
  {
    name: 'PVESCALER_LOG_LEVEL',
    target: ['log', 'level'],
    convert: asLogLevel,
    meaning: 'the log level',
  },
  {
    name: 'PVESCALER_LOG_FORMAT',
    target: ['log', 'format'],
    convert: asText,
    meaning: 'the log format',
  },
  {
    name: 'PVESCALER_CLUSTER_NAME',
    target: ['cluster', 'name'],
    convert: asText,
    meaning: 'the cluster’s name',
  },
  {
    name: 'PVESCALER_KUBECONFIG',
    target: ['cluster', 'kubeconfig'],
    convert: asText,
    meaning: 'the kubeconfig',
  },
  {
    name: 'PVESCALER_NAMESPACE',
    target: ['cluster', 'namespace'],
    convert: asText,
    meaning: 'our namespace',
  },
  {
    name: 'PVESCALER_GRPC_LISTEN',
    target: ['grpc', 'listen'],
    convert: asText,
    meaning: 'the gRPC listener',
  },
  {
    name: 'PVESCALER_HTTP_HEALTH',
    target: ['http', 'health'],
    convert: asText,
    meaning: 'the health listener',
  },
  {
    name: 'PVESCALER_HTTP_DASHBOARD',
    target: ['http', 'dashboard'],
    convert: asText,
    meaning: 'the dashboard’s listener',
  },
];

const EXTERNALGRPC_PROXMOX: readonly Setting[] = [
  {
    name: 'PM_API_URL',
    target: [...REGION, 'endpoints'],
    convert: asEndpoint,
    meaning: 'the API; `/api2/json` at its end is dropped',
  },
  {
    name: 'PM_NODE',
    target: [...REGION, 'hosts', 'allow'],
    convert: asList,
    replaces: ['deny'],
    meaning: 'the only host to use, or several with commas',
  },
  {
    name: 'PM_SERVICE_TOKEN_ID',
    target: [...REGION, 'token', 'id'],
    convert: asText,
    replaces: ['idRef'],
    excludes: noPassword,
    meaning: 'the token’s id',
  },
  {
    name: 'PM_SERVICE_TOKEN_SECRET',
    target: [...REGION, 'token', 'secretEnv'],
    convert: asVariableName,
    replaces: ['secretFile', 'secretRef'],
    excludes: noPassword,
    isSecret: true,
    meaning: 'the token’s secret',
  },
  {
    name: 'PM_TLS_INSECURE',
    target: [...REGION, 'tls', 'insecure'],
    convert: asBoolean,
    excludes: noTrust,
    meaning: 'trust any certificate of the API',
  },
  {
    name: 'PM_VERIFY_CERTIFICATES',
    target: ['images', '<image>', 'verifyCertificates'],
    convert: asBoolean,
    meaning: 'check the certificate of the image download (not of the API)',
  },
  {
    name: 'IMPORT_STORAGE',
    target: [...REGION, 'storage', 'images'],
    convert: asText,
    meaning: 'the storage for images',
  },
  {
    name: 'ISO_STORAGE',
    target: [...REGION, 'storage', 'seeds'],
    convert: asText,
    meaning: 'the storage for seed ISOs',
  },
  {
    name: 'VM_STORAGE',
    target: [...REGION, 'storage', 'disks'],
    convert: asText,
    meaning: 'the storage for disks',
  },
  {
    name: 'BRIDGE',
    target: [...POOLS, 'network', 'interfaces', 0, 'bridge'],
    convert: asText,
    meaning: 'the bridge of every pool’s first card',
  },
  {
    name: 'CLOUD_IMAGE_URL',
    target: ['images', '<image>', 'url'],
    convert: asText,
    keeps: ['checksumUrl', 'checksum'],
    // As it always was with this variable; said by a warning.
    whenCreated: { unverified: true },
    meaning: 'the URL of the image; without an image in the file, one named `default`, unverified',
  },
];

const EXTERNALGRPC_REST: readonly Setting[] = [
  {
    name: 'K3S_VERSION',
    target: ['join', 'k3s', 'version'],
    convert: asText,
    meaning: 'the release of k3s',
  },
  {
    name: 'K3S_SERVER_URL',
    target: ['join', 'k3s', 'server'],
    convert: asText,
    meaning: 'the k3s server',
  },
  {
    name: 'K3S_CLUSTER_TOKEN',
    target: ['join', 'k3s', 'token'],
    convert: asSecretInVariable,
    isSecret: true,
    meaning: 'a static agent token',
  },
  {
    name: 'SSH_PUBLIC_KEY',
    target: ['ssh', 'publicKeys'],
    convert: asSingle,
    meaning: 'the public key for the guest’s user',
  },
  {
    name: 'PROVIDER_STATE_DB',
    target: ['state', 'path'],
    convert: asText,
    meaning: 'the state database',
  },
  {
    name: 'PENDING_VM_TIMEOUT_SECONDS',
    target: [...POOLS, 'provisionTimeout'],
    convert: asSeconds(120),
    meaning: 'seconds until a machine that does not come counts as failed; at least 120',
  },
  {
    name: 'RECONCILE_INTERVAL_SECONDS',
    target: ['intervals', 'reconcile'],
    convert: asSeconds(5),
    meaning: 'seconds between two looks at all machines; at least 5',
  },
  {
    name: 'BIND_ADDRESS',
    target: ['grpc', 'listen'],
    convert: asListenHost,
    isPart: true,
    meaning: 'the host of the gRPC listener',
  },
  {
    name: 'PORT',
    target: ['grpc', 'listen'],
    convert: asListenPort,
    isPart: true,
    meaning: 'the port of the gRPC listener',
  },
  { name: 'LOG_LEVEL', target: ['log', 'level'], convert: asLogLevel, meaning: 'the log level' },
];

const KUBENODESMITH: readonly Setting[] = [
  {
    name: 'PROXMOX_TOKEN_ID',
    target: [...REGION, 'token', 'id'],
    convert: asText,
    replaces: ['idRef'],
    excludes: noPassword,
    meaning: 'the token’s id',
  },
  {
    name: 'PROXMOX_SECRET',
    target: [...REGION, 'token', 'secretEnv'],
    convert: asVariableName,
    replaces: ['secretFile', 'secretRef'],
    excludes: noPassword,
    isSecret: true,
    meaning: 'the token’s secret',
  },
  {
    name: 'PROXMOX_SKIP_TLS_VERIFY',
    target: [...REGION, 'tls', 'insecure'],
    convert: asBoolean,
    excludes: noTrust,
    meaning: 'trust any certificate of the API',
  },
];

const PROXMOX_AUTOSCALER: readonly Setting[] = [
  {
    name: 'PXE_HOST',
    target: [...REGION, 'endpoints'],
    convert: asEndpoint,
    meaning: 'the Proxmox host; port 8006 where none is given',
  },
  {
    name: 'PXE_USER',
    target: [...REGION, 'user'],
    convert: asText,
    excludes: noToken,
    meaning: 'the user, with realm',
  },
  {
    name: 'PXE_PASSWORD',
    target: [...REGION, 'passwordEnv'],
    convert: asVariableName,
    replaces: ['passwordFile', 'passwordRef'],
    isSecret: true,
    meaning: 'the user’s password',
  },
];

export const VARIABLES: readonly Setting[] = [
  ...OURS.map((row) => ({ ...row, system: 'ours' as const })),
  ...[...EXTERNALGRPC_PROXMOX, ...EXTERNALGRPC_REST].map((row) => ({
    ...row,
    system: 'externalgrpc' as const,
  })),
  ...KUBENODESMITH.map((row) => ({ ...row, system: 'kubenodesmith' as const })),
  ...PROXMOX_AUTOSCALER.map((row) => ({ ...row, system: 'proxmox-autoscaler' as const })),
];

/** Variables that name the config file, the first one set counts. */
export const CONFIG_PATH_VARIABLES = [
  'PVESCALER_CONFIG',
  'PROVIDER_CONFIG',
  'SCALER_CONFIG_PATH',
] as const;

/** Flags of `serve` and others that have a say in the config. */
export const FLAGS: readonly Setting[] = [
  { name: '--mode', target: ['mode'], convert: asMode, meaning: 'the mode' },
  {
    name: '--bind',
    target: ['grpc', 'listen'],
    convert: asListenHost,
    isPart: true,
    meaning: 'the host of the gRPC listener',
  },
  {
    name: '--port',
    target: ['grpc', 'listen'],
    convert: asListenPort,
    isPart: true,
    meaning: 'the port of the gRPC listener',
  },
  {
    name: '--kubeconfig',
    target: ['cluster', 'kubeconfig'],
    convert: asText,
    meaning: 'the kubeconfig',
  },
  {
    name: '--context',
    target: ['cluster', 'context'],
    convert: asText,
    meaning: 'the context in it',
  },
  { name: '--state', target: ['state', 'path'], convert: asText, meaning: 'the state database' },
  { name: '--log-level', target: ['log', 'level'], convert: asLogLevel, meaning: 'the log level' },
];
