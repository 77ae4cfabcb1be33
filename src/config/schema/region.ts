// SPDX-License-Identifier: Apache-2.0
// A region: one Proxmox cluster or single host, how to reach it and what of it may be used.
import * as z from 'zod';
import { apiEndpoint, fingerprint, vmIdRange } from './address-leaves.ts';
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

const tokenSecret = secretSourceKeys('the token’s secret', 'PROXMOX_SECRET');
const password = secretSourceKeys('the user’s password', 'password');
const passphrase = secretSourceKeys('the passphrase of the private key', 'passphrase');

const tokenSchema = z.strictObject({
  id: key(tokenId().optional(), 'Id of the API token, `user@realm!name`.', {
    replaces: { externalgrpc: 'proxmox.token_id', kubenodesmith: 'PROXMOX_TOKEN_ID in the Secret' },
  }),
  idRef: key(
    secretRef('PROXMOX_TOKEN_ID').optional(),
    'Takes the id from a Kubernetes Secret too, where both are kept together.',
    { replaces: { kubenodesmith: 'providers.NAME.credentialsRef' } },
  ),
  secretFile: tokenSecret.file,
  secretEnv: tokenSecret.env,
  secretRef: tokenSecret.ref,
});

const tlsSchema = section({
  caFile: key(
    filePath().optional(),
    'CA that signed the API’s certificate (PEM), `/etc/pve/pve-root-ca.pem` on the host.',
    {
      defaultText: 'the system’s CAs',
    },
  ),
  fingerprints: key(
    z.array(fingerprint()).prefault([]),
    'SHA-256 fingerprints of the certificates to trust, one per host.',
  ),
  insecure: key(
    z.boolean().prefault(false),
    'Trust any certificate: whoever answers gets the token. Warned about.',
    {
      replaces: {
        externalgrpc: 'proxmox.tls_insecure',
        kubenodesmith: 'PROXMOX_SKIP_TLS_VERIFY in the Secret',
      },
      note: 'ca-proxmox-externalgrpc trusted any certificate by default, proxmox-autoscaler always; here it has to be asked for',
    },
  ),
});

const sshSchema = z.strictObject({
  user: key(unixUser().prefault('root'), 'User to log in as on the Proxmox hosts.', {
    replaces: { 'vm-plan': 'ssh_user' },
  }),
  port: key(wholeNumber(1, 65_535).prefault(22), 'Port of the SSH servers.'),
  hosts: key(z.array(sshHost()).prefault([]), 'Host names or addresses to log in to.', {
    defaultText: '`hosts.allow`',
    replaces: { 'vm-plan': 'proxmox_nodes' },
  }),
  privateKeyFile: key(filePath(), 'Private key for the log-in.', {
    replaces: { 'vm-plan': 'ssh_private_key_path' },
  }),
  knownHosts: key(
    filePath().prefault('~/.ssh/known_hosts'),
    'File with the hosts’ keys. A host that is not in it is refused.',
  ),
  passphraseFile: passphrase.file,
  passphraseEnv: passphrase.env,
  passphraseRef: passphrase.ref,
});

const storageSchema = section({
  images: key(
    storageId().prefault('local'),
    'Where cloud images are downloaded to; needs content type `import`.',
    {
      replaces: { externalgrpc: 'proxmox.import_storage' },
    },
  ),
  seeds: key(
    storageId().prefault('local'),
    'Where seed ISOs are uploaded to; needs content type `iso`, and the token the right to delete there.',
    {
      replaces: { externalgrpc: 'proxmox.iso_storage' },
    },
  ),
  disks: key(
    z
      .union([storageId(), z.array(storageId()).min(1)])
      .prefault('local-lvm')
      .meta({ 'x-forms': 'a storage, or a list of storages' }),
    'Where disks of VMs go; of a list, the one with most room.',
    { replaces: { externalgrpc: 'proxmox.vm_storage', 'vm-plan': 'vm_template.storage_pool' } },
  ),
});

export const regionSchema = z.strictObject({
  endpoints: key(
    z.array(apiEndpoint()).prefault([]),
    'API of the hosts, `https://host:8006`; tried in turn. Needed unless the transport is SSH.',
    {
      replaces: {
        externalgrpc: 'proxmox.api_url',
        'proxmox-autoscaler': 'pxe_host',
        kubenodesmith: 'providers.NAME.options.endpoint',
      },
    },
  ),
  token: key(tokenSchema.optional(), 'API token: the usual way to log in.'),
  user: key(proxmoxUser().optional(), 'User for a log-in with password, where there is no token.', {
    replaces: { 'proxmox-autoscaler': 'pxe_user' },
  }),
  passwordFile: password.file,
  passwordEnv: password.env,
  passwordRef: password.ref,
  tls: key(tlsSchema, 'How the API’s certificate is checked.'),
  transport: key(
    z
      .union([
        z.literal('rest'),
        z.strictObject({ ssh: key(sshSchema, 'Run `qm` and `pvesh` on the hosts.') }),
      ])
      .prefault('rest')
      .meta({ 'x-forms': '`rest`, or a mapping with the key `ssh`' }),
    'How Proxmox is spoken to: its REST API, or `qm` and `pvesh` over SSH.',
  ),
  hosts: key(
    section({
      allow: key(z.array(proxmoxHost()).prefault([]), 'The only hosts to use; empty: all.', {
        replaces: {
          externalgrpc: 'proxmox.node',
          kubenodesmith: 'providers.NAME.options.nodeWhitelist',
        },
      }),
      deny: key(z.array(proxmoxHost()).prefault([]), 'Hosts never to use.'),
    }),
    'Which Proxmox hosts may carry machines.',
  ),
  vmIds: key(
    vmIdRange().prefault('20000-29999'),
    'VM ids for our machines, both ends included. Keep it to this cluster.',
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
        'Creations at once on one host; the rest wait.',
      ),
      createsPerStorage: key(wholeNumber(1, 100).prefault(2), 'Creations at once on one storage.'),
    }),
    'Back-pressure: Proxmox locks a storage while it allocates.',
  ),
  managedTag: key(
    tag().prefault('pvescaler'),
    'Tag on each VM of ours, for people and for lists. It proves no ownership.',
    {
      replaces: { kubenodesmith: 'providers.NAME.options.managedNodeTag' },
    },
  ),
  tags: key(z.array(tag()).prefault([]), 'Further tags for each VM.', {
    replaces: { externalgrpc: 'defaults.vm_tag_prefix' },
  }),
  resourcePool: key(resourcePoolId().optional(), 'Proxmox resource pool that new VMs join.'),
  requestTimeout: key(
    duration({ min: '1s' }).prefault('35s'),
    'How long one API request may take. A host that asks another one on our behalf waits 30 s for it.',
  ),
  taskTimeout: key(
    duration({ min: '10s' }).prefault('15m'),
    'How long a Proxmox task (clone, import) may take.',
  ),
});
