// SPDX-License-Identifier: Apache-2.0
// Every environment variable and flag that sets a config key. Variables of pvescaler come first: when two
// variables set the same key, the first in this table takes precedence.
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
  asSingleItemList,
  asText,
  asVariableName,
} from './conversions.ts';
import type { OverrideRule } from './override-rule.ts';

const REGION = ['proxmox', '<region>'] as const;
const POOLS = ['pools', '*'] as const;

// A region has one login method, and verifies certificates in one way or not at all.
const passwordKeys = () => ['user', 'passwordFile', 'passwordEnv', 'passwordRef'];
const tokenKeys = () => ['token'];
const trustKeys = (insecure: unknown) =>
  insecure === true ? ['tls.caFile', 'tls.fingerprints'] : [];

const PVESCALER_VARIABLES: readonly OverrideRule[] = [
  { name: 'PVESCALER_MODE', target: ['mode'], convert: asMode, description: 'the mode' },
  {
    name: 'PVESCALER_STATE_PATH',
    target: ['state', 'path'],
    convert: asText,
    description: 'the state database',
  },
  {
    name: 'PVESCALER_STATE_KUBERNETES_NAMESPACE',
    target: ['state', 'kubernetes', 'namespace'],
    convert: asText,
    description: 'the namespace of the state in Kubernetes',
  },
  {
    name: 'PVESCALER_LOG_LEVEL',
    target: ['log', 'level'],
    convert: asLogLevel,
    description: 'the log level',
  },
  {
    name: 'PVESCALER_LOG_FORMAT',
    target: ['log', 'format'],
    convert: asText,
    description: 'the log format',
  },
  {
    name: 'PVESCALER_CLUSTER_NAME',
    target: ['cluster', 'name'],
    convert: asText,
    description: 'the name of the cluster',
  },
  {
    name: 'PVESCALER_KUBECONFIG',
    target: ['cluster', 'kubeconfig'],
    convert: asText,
    description: 'the kubeconfig',
  },
  {
    name: 'PVESCALER_NAMESPACE',
    target: ['cluster', 'namespace'],
    convert: asText,
    description: 'the namespace of pvescaler',
  },
  {
    name: 'PVESCALER_GRPC_LISTEN',
    target: ['grpc', 'listen'],
    convert: asText,
    description: 'the gRPC listener',
  },
  {
    name: 'PVESCALER_HTTP_HEALTH',
    target: ['http', 'health'],
    convert: asText,
    description: 'the health listener',
  },
  {
    name: 'PVESCALER_HTTP_DASHBOARD',
    target: ['http', 'dashboard'],
    convert: asText,
    description: 'the dashboard listener',
  },
];

const EXTERNALGRPC_PROXMOX_VARIABLES: readonly OverrideRule[] = [
  {
    name: 'PM_API_URL',
    target: [...REGION, 'endpoints'],
    convert: asEndpoint,
    description: 'the API URL; a trailing `/api2/json` is removed',
  },
  {
    name: 'PM_NODE',
    target: [...REGION, 'hosts', 'allow'],
    convert: asList,
    replaces: ['deny'],
    description: 'the host to use, or a comma-separated list',
  },
  {
    name: 'PM_SERVICE_TOKEN_ID',
    target: [...REGION, 'token', 'id'],
    convert: asText,
    replaces: ['idRef'],
    conflictsWith: passwordKeys,
    description: 'the token id',
  },
  {
    name: 'PM_SERVICE_TOKEN_SECRET',
    target: [...REGION, 'token', 'secretEnv'],
    convert: asVariableName,
    replaces: ['secretFile', 'secretRef'],
    conflictsWith: passwordKeys,
    isSecret: true,
    description: 'the secret of the token',
  },
  {
    name: 'PM_TLS_INSECURE',
    target: [...REGION, 'tls', 'insecure'],
    convert: asBoolean,
    conflictsWith: trustKeys,
    description: 'accept any certificate of the API',
  },
  {
    name: 'PM_VERIFY_CERTIFICATES',
    target: ['images', '<image>', 'verifyCertificates'],
    convert: asBoolean,
    description: 'verify the certificate of the image download server (not of the API)',
  },
  {
    name: 'IMPORT_STORAGE',
    target: [...REGION, 'storage', 'images'],
    convert: asText,
    description: 'the storage for images',
  },
  {
    name: 'ISO_STORAGE',
    target: [...REGION, 'storage', 'seeds'],
    convert: asText,
    description: 'the storage for seed ISOs',
  },
  {
    name: 'VM_STORAGE',
    target: [...REGION, 'storage', 'disks'],
    convert: asText,
    description: 'the storage for disks',
  },
  {
    name: 'BRIDGE',
    target: [...POOLS, 'network', 'interfaces', 0, 'bridge'],
    convert: asText,
    description: 'the bridge of the first network card of every pool',
  },
  {
    name: 'CLOUD_IMAGE_URL',
    target: ['images', '<image>', 'url'],
    convert: asText,
    staleSiblings: ['checksumUrl', 'checksum'],
    // This variable never had a checksum; a check warns about it.
    createdWith: { unverified: true },
    description:
      'the URL of the image; without an image in the file it creates an unverified image named `default`',
  },
];

const EXTERNALGRPC_OTHER_VARIABLES: readonly OverrideRule[] = [
  {
    name: 'K3S_VERSION',
    target: ['join', 'k3s', 'version'],
    convert: asText,
    description: 'the release of k3s',
  },
  {
    name: 'K3S_SERVER_URL',
    target: ['join', 'k3s', 'server'],
    convert: asText,
    description: 'the k3s server',
  },
  {
    name: 'K3S_CLUSTER_TOKEN',
    target: ['join', 'k3s', 'token'],
    convert: asSecretInVariable,
    isSecret: true,
    description: 'a static agent token',
  },
  {
    name: 'SSH_PUBLIC_KEY',
    target: ['ssh', 'publicKeys'],
    convert: asSingleItemList,
    description: 'the public key of the guest user',
  },
  {
    name: 'PROVIDER_STATE_DB',
    target: ['state', 'path'],
    convert: asText,
    description: 'the state database',
  },
  {
    name: 'PENDING_VM_TIMEOUT_SECONDS',
    target: [...POOLS, 'provisionTimeout'],
    convert: asSeconds(120),
    description: 'seconds until a machine without a ready node counts as failed; at least 120',
  },
  {
    name: 'RECONCILE_INTERVAL_SECONDS',
    target: ['intervals', 'reconcile'],
    convert: asSeconds(5),
    description: 'seconds between two reconcile passes; at least 5',
  },
  {
    name: 'BIND_ADDRESS',
    target: ['grpc', 'listen'],
    convert: asListenHost,
    setsPart: true,
    description: 'the host of the gRPC listener',
  },
  {
    name: 'PORT',
    target: ['grpc', 'listen'],
    convert: asListenPort,
    setsPart: true,
    description: 'the port of the gRPC listener',
  },
  {
    name: 'LOG_LEVEL',
    target: ['log', 'level'],
    convert: asLogLevel,
    description: 'the log level',
  },
];

const KUBENODESMITH_VARIABLES: readonly OverrideRule[] = [
  {
    name: 'PROXMOX_TOKEN_ID',
    target: [...REGION, 'token', 'id'],
    convert: asText,
    replaces: ['idRef'],
    conflictsWith: passwordKeys,
    description: 'the token id',
  },
  {
    name: 'PROXMOX_SECRET',
    target: [...REGION, 'token', 'secretEnv'],
    convert: asVariableName,
    replaces: ['secretFile', 'secretRef'],
    conflictsWith: passwordKeys,
    isSecret: true,
    description: 'the secret of the token',
  },
  {
    name: 'PROXMOX_SKIP_TLS_VERIFY',
    target: [...REGION, 'tls', 'insecure'],
    convert: asBoolean,
    conflictsWith: trustKeys,
    description: 'accept any certificate of the API',
  },
];

const PROXMOX_AUTOSCALER_VARIABLES: readonly OverrideRule[] = [
  {
    name: 'PXE_HOST',
    target: [...REGION, 'endpoints'],
    convert: asEndpoint,
    description: 'the Proxmox host; the default port is 8006',
  },
  {
    name: 'PXE_USER',
    target: [...REGION, 'user'],
    convert: asText,
    conflictsWith: tokenKeys,
    description: 'the user, with realm',
  },
  {
    name: 'PXE_PASSWORD',
    target: [...REGION, 'passwordEnv'],
    convert: asVariableName,
    replaces: ['passwordFile', 'passwordRef'],
    isSecret: true,
    description: 'the password of the user',
  },
];

export const VARIABLES: readonly OverrideRule[] = [
  ...PVESCALER_VARIABLES.map((row) => ({ ...row, system: 'pvescaler' as const })),
  ...[...EXTERNALGRPC_PROXMOX_VARIABLES, ...EXTERNALGRPC_OTHER_VARIABLES].map((row) => ({
    ...row,
    system: 'externalgrpc' as const,
  })),
  ...KUBENODESMITH_VARIABLES.map((row) => ({ ...row, system: 'kubenodesmith' as const })),
  ...PROXMOX_AUTOSCALER_VARIABLES.map((row) => ({ ...row, system: 'proxmox-autoscaler' as const })),
];

/** Variables that name the config file; the first one that is set is used. */
export const CONFIG_PATH_VARIABLES = [
  'PVESCALER_CONFIG',
  'PROVIDER_CONFIG',
  'SCALER_CONFIG_PATH',
] as const;

/** Command line flags that override config keys. */
export const FLAGS: readonly OverrideRule[] = [
  { name: '--mode', target: ['mode'], convert: asMode, description: 'the mode' },
  {
    name: '--bind',
    target: ['grpc', 'listen'],
    convert: asListenHost,
    setsPart: true,
    description: 'the host of the gRPC listener',
  },
  {
    name: '--port',
    target: ['grpc', 'listen'],
    convert: asListenPort,
    setsPart: true,
    description: 'the port of the gRPC listener',
  },
  {
    name: '--kubeconfig',
    target: ['cluster', 'kubeconfig'],
    convert: asText,
    description: 'the kubeconfig',
  },
  {
    name: '--context',
    target: ['cluster', 'context'],
    convert: asText,
    description: 'the context in the kubeconfig',
  },
  {
    name: '--state',
    target: ['state', 'path'],
    convert: asText,
    description: 'the state database',
  },
  {
    name: '--log-level',
    target: ['log', 'level'],
    convert: asLogLevel,
    description: 'the log level',
  },
  {
    name: '--log-format',
    target: ['log', 'format'],
    convert: asText,
    description: 'the log format',
  },
];
