// SPDX-License-Identifier: Apache-2.0
// Where a new VM comes from and how large it is: images, templates, named sizes; and the guest's SSH.
import * as z from 'zod';
import { checksum, url, vmId } from './address-leaves.ts';
import { bytes, duration, wholeNumber } from './amount-leaves.ts';
import { key, section } from './key.ts';
import { textLeaf } from './leaf.ts';
import {
  bridge,
  checkPattern,
  dnsName,
  filePath,
  nonEmptyText,
  proxmoxHost,
  storageId,
  unixUser,
} from './name-leaves.ts';

export const CPU_MAX = 8192;

export const imageSchema = z.strictObject({
  url: key(url(), 'Cloud image; each Proxmox storage downloads it once.', {
    replaces: { externalgrpc: 'proxmox.cloud_image_url', 'vm-plan': 'vm_template.image_url' },
  }),
  checksumUrl: key(
    url().optional(),
    'List of checksums that names the image (`SHA256SUMS`, `SHA512SUMS`).',
    {
      replaces: { 'vm-plan': 'vm_template.checksum_url' },
    },
  ),
  checksum: key(checksum().optional(), 'The checksum itself, `sha256:…`, instead of a list.'),
  unverified: key(z.boolean().prefault(false), 'Take the image without a checksum. Warned about.', {
    note: 'ca-proxmox-externalgrpc never verified',
  }),
  verifyCertificates: key(
    z.boolean().prefault(true),
    'Whether Proxmox checks the certificate of the download server.',
    {
      replaces: { externalgrpc: 'proxmox.verify_certificates' },
      note: 'off by default there',
    },
  ),
  format: key(
    z.enum(['qcow2', 'raw', 'vmdk']).optional(),
    'Format of the file, where its name does not tell.',
    { defaultText: 'from the URL; `.img` counts as `qcow2`' },
  ),
});

export const templateSchema = z.strictObject({
  name: key(
    dnsName().optional(),
    'Name of the template VM; on each host the one with this name is used.',
    {
      replaces: {
        'proxmox-autoscaler': 'pxe_autoscaled_node_template_vm',
        'vm-plan': 'vm_template.name',
      },
      note: 'matched as a whole, not as a part of a name',
    },
  ),
  id: key(
    z
      .union([vmId(), z.record(proxmoxHost(), vmId())])
      .optional()
      .meta({ 'x-forms': 'a VM id, or a mapping from host to VM id' }),
    'VM id of the template; with local storage, one per host: `{ pve1: 9000, pve2: 9001 }`.',
    { replaces: { 'vm-plan': 'vm_template.id' } },
  ),
  image: key(nonEmptyText().optional(), 'Image that `pvescaler template build` makes it from.'),
  cpu: key(wholeNumber(1, CPU_MAX).prefault(1), 'vCPUs of the template.', {
    replaces: { 'vm-plan': 'vm_template.base_cpus' },
  }),
  memory: key(bytes({ min: '64Mi' }).prefault('2Gi'), 'Memory of the template.', {
    replaces: { 'vm-plan': 'vm_template.base_memory_mb' },
  }),
  disk: key(
    bytes({ min: '64Mi' }).prefault('16Gi'),
    'Disk of the template; a machine’s disk is at least as large.',
    {
      replaces: { 'vm-plan': 'vm_template.base_disk_gb' },
    },
  ),
  packages: key(
    z.array(nonEmptyText()).prefault(['qemu-guest-agent']),
    'Packages installed while the template is built.',
  ),
  storage: key(storageId().optional(), 'Storage of the template’s disk.', {
    defaultText: '`storage.disks` of the region',
    replaces: { 'vm-plan': 'vm_template.storage_pool' },
  }),
  bridge: key(bridge().prefault('vmbr0'), 'Bridge the template is built on.', {
    replaces: { 'vm-plan': 'vm_template.network_bridge' },
  }),
});

export const sizeSchema = z.strictObject({
  cpu: key(wholeNumber(1, CPU_MAX), 'vCPUs.', {
    replaces: { externalgrpc: 'node_groups[].cores', 'vm-plan': 'vm_sizes.NAME.cpus' },
  }),
  memory: key(
    bytes({ min: '64Mi' }),
    'Memory that the guest sees as a whole; what pods may use is less.',
    {
      replaces: { externalgrpc: 'node_groups[].memory_mb', 'vm-plan': 'vm_sizes.NAME.memory_mb' },
    },
  ),
  disk: key(bytes({ min: '1Gi' }).prefault('20Gi'), 'Size of the disk.', {
    replaces: { externalgrpc: 'node_groups[].disk_size', 'vm-plan': 'vm_sizes.NAME.disk_gb' },
  }),
});

function publicKey() {
  return textLeaf({ type: 'SSH public key', json: { type: 'string' } }, (value) =>
    checkPattern(
      value.trim(),
      /^(ssh-(rsa|ed25519|dss)|ecdsa-sha2-\S+|sk-\S+) [A-Za-z0-9+/=]{16,}( [^\n]*)?$/,
      'is not one line of an SSH public key file',
    ),
  );
}

export const guestSshSchema = section({
  user: key(unixUser().prefault('ubuntu'), 'User in the guest that gets the keys.'),
  publicKeys: key(
    z.array(publicKey()).prefault([]),
    'Public keys that may log in to new machines.',
    {
      replaces: { externalgrpc: 'k3s.ssh_public_key', 'vm-plan': 'cloud_init.ssh_public_key' },
    },
  ),
  publicKeyFiles: key(z.array(filePath()).prefault([]), 'Files with such keys.'),
  privateKeyFile: key(
    filePath().optional(),
    'Private key with which `vm create` checks that a machine lets it in.',
    {
      defaultText: 'no SSH check',
    },
  ),
});

export const readinessSchema = section({
  timeout: key(
    duration({ min: '1s' }).prefault('300s'),
    'How long `vm create` waits for a new VM.',
    {
      replaces: { 'vm-plan': 'readiness_check.timeout_seconds' },
    },
  ),
  agentInterval: key(
    duration({ min: '1s' }).prefault('15s'),
    'Pause between two calls to the guest agent.',
  ),
  sshInterval: key(duration({ min: '1s' }).prefault('10s'), 'Pause between two SSH attempts.', {
    replaces: { 'vm-plan': 'readiness_check.ssh_check_interval_seconds' },
  }),
});
