// SPDX-License-Identifier: Apache-2.0
// A region: one Proxmox cluster or a single host, how to connect to it, and which of its resources to use.
import * as z from 'zod';
import { DEFAULT_VM_ID_RANGE, formatVmIdRange } from '../values/vm-id-range.ts';
import { apiEndpoint, fingerprint, sshFingerprint, vmIdRange } from './address-leaves.ts';
import { duration, wholeNumber } from './amount-leaves.ts';
import { key, section } from './key.ts';
import {
  filePath,
  proxmoxHost,
  proxmoxUser,
  resourcePoolId,
  sshHost,
  storageId,
  tag,
  tokenId,
  unixUser,
} from './name-leaves.ts';
import { secretRef, secretSourceKeys } from './secret-keys.ts';

const tokenSecret = secretSourceKeys('the secret of the token', 'PROXMOX_SECRET');
const password = secretSourceKeys('the password of the user', 'password');
const passphrase = secretSourceKeys('the passphrase of the private key', 'passphrase');

const tokenSchema = z.strictObject({
  id: key(tokenId().optional(), 'API token id, `user@realm!name`.', {
    replaces: { externalgrpc: 'proxmox.token_id', kubenodesmith: 'PROXMOX_TOKEN_ID in the Secret' },
  }),
  idRef: key(
    secretRef('PROXMOX_TOKEN_ID').optional(),
    'Kubernetes Secret that holds the token id, when id and secret are stored together.',
    { replaces: { kubenodesmith: 'providers.NAME.credentialsRef' } },
  ),
  secretFile: tokenSecret.file,
  secretEnv: tokenSecret.env,
  secretRef: tokenSecret.ref,
});

const tlsSchema = section({
  caFile: key(
    filePath().optional(),
    'CA that signed the API certificate (PEM), `/etc/pve/pve-root-ca.pem` on a Proxmox host.',
    {
      defaultText: 'the system CAs',
    },
  ),
  fingerprints: key(
    z.array(fingerprint()).prefault([]),
    'SHA-256 fingerprints of trusted API certificates, one per host.',
  ),
  insecure: key(
    z.boolean().prefault(false),
    'Accept any certificate. Any server that answers then receives the token. Causes a warning.',
    {
      replaces: {
        externalgrpc: 'proxmox.tls_insecure',
        kubenodesmith: 'PROXMOX_SKIP_TLS_VERIFY in the Secret',
      },
      note: 'ca-proxmox-externalgrpc accepted any certificate by default, proxmox-autoscaler always; here it must be enabled explicitly',
    },
  ),
});

const sshSchema = z.strictObject({
  user: key(unixUser().prefault('root'), 'SSH user on the Proxmox hosts; must be root.', {
    replaces: { 'vm-plan': 'ssh_user' },
  }),
  port: key(wholeNumber(1, 65_535).prefault(22), 'SSH port.'),
  hosts: key(
    z.array(sshHost()).prefault([]),
    'Every host that may run machines, as name or address, with `:port` if it differs.',
    {
      defaultText: '`hosts.allow`',
      replaces: { 'vm-plan': 'proxmox_nodes' },
    },
  ),
  privateKeyFile: key(filePath().optional(), 'SSH private key.', {
    replaces: { 'vm-plan': 'ssh_private_key_path' },
  }),
  agent: key(
    z.boolean().prefault(false),
    'Log in with the keys of the SSH agent (`SSH_AUTH_SOCK`) instead of a key file.',
  ),
  knownHosts: key(
    filePath().optional(),
    'Known hosts file. On a terminal, pvescaler asks whether to trust an unknown host; otherwise it refuses it.',
    { defaultText: '`~/.ssh/known_hosts`' },
  ),
  hostKeys: key(
    z.array(sshFingerprint()).prefault([]),
    'Fingerprints of the trusted host keys, one per host, instead of a known hosts file.',
    { examples: [['SHA256:3F0uqxVkmZ5kqyVLbQ6ZbHqYQ5pBmS4lAPY4Ay1wQ7c']] },
  ),
  passphraseFile: passphrase.file,
  passphraseEnv: passphrase.env,
  passphraseRef: passphrase.ref,
});

const storageSchema = section({
  images: key(
    storageId().prefault('local'),
    'Storage for downloaded cloud images; needs content type `import`.',
    {
      replaces: { externalgrpc: 'proxmox.import_storage' },
    },
  ),
  seeds: key(
    storageId().prefault('local'),
    'Storage for seed ISOs; needs content type `iso`, and the token needs permission to delete files.',
    {
      replaces: { externalgrpc: 'proxmox.iso_storage' },
    },
  ),
  disks: key(
    z
      .union([storageId(), z.array(storageId()).min(1)])
      .prefault('local-lvm')
      .meta({ 'x-forms': 'a storage, or a list of storages' }),
    'Storage for VM disks; from a list, the storage with the most free space is used.',
    { replaces: { externalgrpc: 'proxmox.vm_storage', 'vm-plan': 'vm_template.storage_pool' } },
  ),
});

export const regionSchema = z.strictObject({
  endpoints: key(
    z.array(apiEndpoint()).prefault([]),
    'API URLs of the hosts, `https://host:8006`, tried in order. Required unless the transport is SSH.',
    {
      replaces: {
        externalgrpc: 'proxmox.api_url',
        'proxmox-autoscaler': 'pxe_host',
        kubenodesmith: 'providers.NAME.options.endpoint',
      },
    },
  ),
  token: key(tokenSchema.optional(), 'API token; the recommended login method.'),
  user: key(
    proxmoxUser().optional(),
    'User for a login with password, as an alternative to a token.',
    {
      replaces: { 'proxmox-autoscaler': 'pxe_user' },
    },
  ),
  passwordFile: password.file,
  passwordEnv: password.env,
  passwordRef: password.ref,
  tls: key(tlsSchema, 'Verification of the API certificate.'),
  transport: key(
    z
      .union([
        z.literal('rest'),
        z.strictObject({ ssh: key(sshSchema, 'Run `pvesh` and `qm` on the hosts as root.') }),
      ])
      .prefault('rest')
      .meta({ 'x-forms': '`rest`, or a mapping with the key `ssh`' }),
    'How pvescaler connects to Proxmox: the REST API, or `pvesh` and `qm` on the hosts over SSH.',
  ),
  hosts: key(
    section({
      allow: key(z.array(proxmoxHost()).prefault([]), 'Hosts to use; empty means all.', {
        replaces: {
          externalgrpc: 'proxmox.node',
          kubenodesmith: 'providers.NAME.options.nodeWhitelist',
        },
      }),
      deny: key(z.array(proxmoxHost()).prefault([]), 'Hosts that are never used.'),
    }),
    'Proxmox hosts that may run machines.',
  ),
  vmIds: key(
    vmIdRange().prefault(formatVmIdRange(DEFAULT_VM_ID_RANGE)),
    'Range of VM ids for machines, both ends included. Reserve it for this Kubernetes cluster.',
    {
      replaces: {
        kubenodesmith: [
          'providers.NAME.options.vmIDRange.lower',
          'providers.NAME.options.vmIDRange.upper',
        ],
      },
      examples: ['1250-1300'],
    },
  ),
  storage: key(storageSchema, 'Proxmox storages.'),
  limits: key(
    section({
      createsPerHost: key(
        wholeNumber(1, 100).prefault(2),
        'Maximum concurrent creations per host; further creations wait.',
      ),
      createsPerStorage: key(
        wholeNumber(1, 100).prefault(2),
        'Maximum concurrent creations per storage.',
      ),
      deletesPerHost: key(
        wholeNumber(1, 100).prefault(2),
        'Maximum concurrent deletions of VMs per host; further deletions wait.',
      ),
      deletesPerStorage: key(
        wholeNumber(1, 100).prefault(2),
        'Maximum concurrent deletions of VMs per storage.',
      ),
    }),
    'Concurrency limits. Proxmox locks a storage while it allocates or frees a disk.',
  ),
  managedTag: key(
    tag().prefault('pvescaler'),
    'Tag on each managed VM, for display and filtering. The tag does not prove ownership.',
    {
      replaces: { kubenodesmith: 'providers.NAME.options.managedNodeTag' },
    },
  ),
  tags: key(z.array(tag()).prefault([]), 'Additional tags of each VM.', {
    replaces: { externalgrpc: 'defaults.vm_tag_prefix' },
  }),
  resourcePool: key(resourcePoolId().optional(), 'Proxmox resource pool of new VMs.'),
  requestTimeout: key(
    duration({ min: '1s' }).prefault('35s'),
    'Timeout of one API request. A Proxmox host that forwards a request to another host waits up to 30 s.',
  ),
  taskTimeout: key(
    duration({ min: '10s' }).prefault('15m'),
    'How long a Proxmox task (clone, import) may run before it is reported. Nothing else is done with its VM until it ends.',
  ),
});
