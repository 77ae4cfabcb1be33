// SPDX-License-Identifier: Apache-2.0
// Sources and sizes of new VMs: images, templates, named sizes; and SSH access to the guest.
import * as z from 'zod';
import { checksum, url, vmId } from './address-leaves.ts';
import { bytes, duration, wholeNumber } from './amount-leaves.ts';
import { key, section } from './key.ts';
import { textLeaf } from './leaf.ts';
import {
  aptPackage,
  aptSource,
  bridge,
  checkPattern,
  dnsName,
  entryName,
  filePath,
  guestPath,
  nonEmptyText,
  octalMode,
  proxmoxHost,
  storageId,
  unixUser,
} from './name-leaves.ts';

export const CPU_MAX = 8192;

export const imageSchema = z.strictObject({
  url: key(url(), 'URL of the cloud image. Each Proxmox storage downloads it once.', {
    replaces: { externalgrpc: 'proxmox.cloud_image_url', 'vm-plan': 'vm_template.image_url' },
  }),
  checksumUrl: key(
    url().optional(),
    'URL of a checksum list that contains the image (`SHA256SUMS`, `SHA512SUMS`).',
    {
      replaces: { 'vm-plan': 'vm_template.checksum_url' },
    },
  ),
  checksum: key(checksum().optional(), 'Checksum of the image, `sha256:…`, instead of a list.'),
  unverified: key(
    z.boolean().prefault(false),
    'Accept the image without a checksum. Causes a warning.',
    {
      note: 'ca-proxmox-externalgrpc never verified images',
    },
  ),
  verifyCertificates: key(
    z.boolean().prefault(true),
    'Let Proxmox verify the certificate of the download server.',
    {
      replaces: { externalgrpc: 'proxmox.verify_certificates' },
      note: 'off by default in ca-proxmox-externalgrpc',
    },
  ),
  format: key(
    z.enum(['qcow2', 'raw', 'vmdk']).optional(),
    'Image format, when the file name does not show it.',
    { defaultText: 'derived from the URL; `.img` means `qcow2`' },
  ),
});

export const templateSchema = z.strictObject({
  name: key(
    dnsName().optional(),
    'Name of the template VM; each host uses its own template with this name.',
    {
      replaces: {
        'proxmox-autoscaler': 'pxe_autoscaled_node_template_vm',
        'vm-plan': 'vm_template.name',
      },
      note: 'must match the whole name, not a part of it',
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
  image: key(nonEmptyText().optional(), 'Image from which the template is built.'),
  cpu: key(wholeNumber(1, CPU_MAX).prefault(1), 'vCPUs of the template.', {
    replaces: { 'vm-plan': 'vm_template.base_cpus' },
  }),
  memory: key(bytes({ min: '64Mi' }).prefault('2Gi'), 'Memory of the template.', {
    replaces: { 'vm-plan': 'vm_template.base_memory_mb' },
  }),
  disk: key(
    bytes({ min: '64Mi' }).prefault('16Gi'),
    'Disk size of the template; the disk of a machine is at least as large.',
    {
      replaces: { 'vm-plan': 'vm_template.base_disk_gb' },
    },
  ),
  packages: key(
    z.array(aptPackage()).prefault(['qemu-guest-agent']),
    'Packages installed while the template is built.',
  ),
  sources: key(
    z
      .array(
        z.strictObject({
          name: key(entryName(), 'Name of the files in /etc/apt.'),
          source: key(
            aptSource(),
            'URL, suite and components, as in sources.list: `https://download.docker.com/linux/ubuntu jammy stable`.',
          ),
          key: key(z.string().optional(), 'Public key of the source, ASCII-armored.'),
          keyUrl: key(url().optional(), 'URL of the public key, instead of `key`.'),
        }),
      )
      .prefault([]),
    'Additional package sources (apt) with their keys.',
  ),
  files: key(
    z
      .array(
        z.strictObject({
          path: key(guestPath(), 'Path of the file in the template.'),
          content: key(z.string(), 'Content of the file. No secrets: each clone has the file.'),
          permissions: key(octalMode().prefault('0644'), 'File mode.'),
        }),
      )
      .prefault([]),
    'Files written into the template.',
  ),
  commands: key(
    z.array(nonEmptyText()).prefault([]),
    'Shell commands that run as root after the packages were installed. The first that fails ends the build.',
  ),
  kubeadm: key(
    z
      .strictObject({
        version: key(
          textLeaf({ type: 'version', json: { type: 'string' } }, (value) =>
            checkPattern(value, /^1\.\d{2}\.\d+$/, 'must be a Kubernetes release, such as 1.34.2'),
          ),
          'Release of kubelet and kubeadm, as in `1.34.2`.',
        ),
      })
      .optional(),
    'Installs containerd, kubelet and kubeadm, ready for `join.kubeadm`.',
    { defaultText: 'none' },
  ),
  storage: key(storageId().optional(), 'Storage of the template disk.', {
    defaultText: '`storage.disks` of the region',
    replaces: { 'vm-plan': 'vm_template.storage_pool' },
  }),
  bridge: key(bridge().prefault('vmbr0'), 'Bridge that is used to build the template.', {
    replaces: { 'vm-plan': 'vm_template.network_bridge' },
  }),
});

export const sizeSchema = z.strictObject({
  cpu: key(wholeNumber(1, CPU_MAX), 'vCPUs.', {
    replaces: { externalgrpc: 'node_groups[].cores', 'vm-plan': 'vm_sizes.NAME.cpus' },
  }),
  memory: key(bytes({ min: '64Mi' }), 'Total memory of the guest; pods can use less.', {
    replaces: { externalgrpc: 'node_groups[].memory_mb', 'vm-plan': 'vm_sizes.NAME.memory_mb' },
  }),
  disk: key(bytes({ min: '1Gi' }).prefault('20Gi'), 'Size of the disk.', {
    replaces: { externalgrpc: 'node_groups[].disk_size', 'vm-plan': 'vm_sizes.NAME.disk_gb' },
  }),
});

function publicKey() {
  return textLeaf({ type: 'SSH public key', json: { type: 'string' } }, (value) =>
    checkPattern(
      value.trim(),
      /^(ssh-(rsa|ed25519|dss)|ecdsa-sha2-\S+|sk-\S+) [A-Za-z0-9+/=]{16,}( [^\n]*)?$/,
      'must be one line of an SSH public key file; a path belongs to publicKeyFiles',
    ),
  );
}

export const guestSshSchema = section({
  user: key(unixUser().prefault('ubuntu'), 'Guest user that gets the public keys.'),
  publicKeys: key(
    z.array(publicKey()).prefault([]),
    'Public keys that may log in to new machines.',
    {
      replaces: { externalgrpc: 'k3s.ssh_public_key', 'vm-plan': 'cloud_init.ssh_public_key' },
    },
  ),
  publicKeyFiles: key(z.array(filePath()).prefault([]), 'Files with SSH public keys.'),
  privateKeyFile: key(filePath().optional(), 'Private key to check SSH access to a new VM.', {
    defaultText: 'no SSH check',
  }),
});

export const readinessSchema = section({
  timeout: key(duration({ min: '1s' }).prefault('300s'), 'Maximum time to wait for a new VM.', {
    replaces: { 'vm-plan': 'readiness_check.timeout_seconds' },
  }),
  sshInterval: key(duration({ min: '1s' }).prefault('10s'), 'Interval between two SSH attempts.', {
    replaces: { 'vm-plan': 'readiness_check.ssh_check_interval_seconds' },
  }),
});
