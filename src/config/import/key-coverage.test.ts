// SPDX-License-Identifier: Apache-2.0
// Every key of a source system is imported or noted. The fixtures contain each key with a non-default value.
import { describe, expect, it } from 'vitest';
import { expandForms, type SchemaNode, schemaTree } from '../schema/tree.ts';
import type { SourceSystem } from '../source-systems.ts';
import { importText, readFixture } from './testing/import-text.ts';

interface KeyTable {
  readonly system: SourceSystem;
  readonly file: string;
  readonly keys: readonly string[];
}

const escaped = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
const prefixed = (prefix: string, keys: string) => keys.split(' ').map((key) => `${prefix}${key}`);

const GROUP_KEYS =
  'id vm_name_prefix min_size max_size cores memory_mb balloon_mb disk_size labels taints';
const OPTIONS = 'providers.rack-one.options.';
const POOL = 'nodePools[0].';

const TABLES: readonly KeyTable[] = [
  {
    system: 'externalgrpc',
    file: 'externalgrpc/full.yaml',
    keys: [
      ...prefixed(
        'proxmox.',
        'api_url node token_id token_secret tls_insecure verify_certificates import_storage iso_storage vm_storage bridge cloud_image_url',
      ),
      ...prefixed(
        'k3s.',
        'version server_url cluster_token ssh_public_key registries_yaml registries_yaml_file',
      ),
      'defaults.vm_tag_prefix',
      ...prefixed('node_groups[0].', GROUP_KEYS),
      ...prefixed('node_groups[1].', GROUP_KEYS),
    ],
  },
  {
    system: 'proxmox-autoscaler',
    file: 'proxmox-autoscaler/settings.py',
    keys: [
      ...prefixed('pxe_', 'host user password vm_lost_cleanup_delay'),
      ...prefixed(
        'pxe_autoscaled_node_',
        'template_vm name network_mode ip_pool ip_mask ip_gateway dns_server',
      ),
      ...prefixed(
        'scale_',
        'down_unneeded_time down_delay up_delay_after_add down_delay_after_add down_delay_after_error down_utilization_threshold',
      ),
      ...prefixed('', 'node_group_label min_size max_size scan_interval max_node_provision_time'),
      ...prefixed('', 'max_total_unready_percentage ok_total_unready_count'),
    ],
  },
  {
    system: 'vm-plan',
    file: 'vm-plan/config.yaml',
    keys: [
      ...prefixed('', 'proxmox_nodes ssh_user ssh_private_key_path cloud_init.ssh_public_key'),
      ...prefixed(
        'vm_template.',
        'name id image_url checksum_url storage_pool network_bridge base_cpus base_memory_mb base_disk_gb',
      ),
      ...prefixed('vm_sizes.small.', 'cpus memory_mb disk_gb'),
      ...prefixed('readiness_check.', 'timeout_seconds ssh_check_interval_seconds'),
    ],
  },
  {
    system: 'vm-plan',
    file: 'vm-plan/template.config.yml',
    keys: [
      ...prefixed('ssh.', 'url key_path password'),
      ...prefixed('image.', 'url local_path download'),
      ...prefixed(
        'vm.',
        'id name storage_pool memory_mb cores network.model network.bridge scsihw',
      ),
      ...prefixed('vm.', 'scsi_device cloudinit.enable cloudinit.device boot.order boot.disk'),
      ...prefixed('vm.', 'serial.type serial.device vga'),
      ...prefixed('', 'cleanup.remove_local_image force.destroy_existing force.destroy_options'),
    ],
  },
  {
    system: 'vm-plan',
    file: 'vm-plan/vm.config.yml',
    keys: [
      ...prefixed('proxmox.', 'ssh_url key_path password storage'),
      ...prefixed(
        'vms[0].',
        'vmid template_name vm_name ciuser ssh_key_file force start guest_agent',
      ),
    ],
  },
  {
    system: 'kubenodesmith',
    file: 'kubenodesmith/scaler-config.yaml',
    keys: [
      ...prefixed('', 'schemaVersion pollingInterval'),
      ...prefixed('providers.rack-one.', 'type credentialsRef.name credentialsRef.namespace'),
      ...prefixed(OPTIONS, 'endpoint nodeWhitelist vmIDRange.lower vmIDRange.upper'),
      ...prefixed(OPTIONS, 'vmMemOverheadMiB managedNodeTag'),
      ...prefixed(`${OPTIONS}networkInterfaces[0].`, 'name model bridge vlanTag macPrefix'),
      // Entries are identified by their name; name and value belong together.
      ...Array.from({ length: 13 }, (_, index) => `${OPTIONS}vmOptions[${index}]`),
      ...prefixed(POOL, 'name providerRef poolLabelKey'),
      ...prefixed(`${POOL}limits.`, 'minNodes maxNodes cpuCores memoryMiB'),
      ...prefixed(`${POOL}machineTemplate.`, 'kubeNodeNamePrefix architecture labels'),
      ...prefixed(POOL, 'scaleUp.batchSize scaleUp.stabilizationWindow'),
      ...prefixed(POOL, 'scaleDown.maxConcurrent scaleDown.drainTimeout'),
    ],
  },
];

describe.each(TABLES)('$file', ({ system, file, keys }) => {
  const { yaml, notes } = importText(system, readFixture(file));
  const remarks = yaml.split('\n').flatMap((line) => line.split('#').slice(1));
  const mentioned = [...remarks, ...notes.map(({ path }) => path)];

  it.each(keys)('%s is imported or noted', (key) => {
    const mentions = new RegExp(`(?:^|[\\s,])${escaped(key)}(?:[\\s,.[]|$)`);
    expect(mentioned.some((text) => mentions.test(text))).toBe(true);
  });

  it('contains every key of the table', () => {
    const text = readFixture(file);
    const last = keys.map((key) => key.replace(/\[\d+\]$/, '').replace(/^.*\./, ''));
    expect(last.filter((word) => !text.includes(word))).toStrictEqual([]);
  });
});

it('the tables contain all keys of the source systems', () => {
  expect(TABLES.map(({ keys }) => keys.length)).toStrictEqual([38, 24, 18, 25, 12, 43]);
});

/** Keys of other systems that our schema replaces. */
function* replacedKeys(node: SchemaNode): Generator<readonly [string, string]> {
  for (const [system, keys] of Object.entries(node['x-replaces'] ?? {})) {
    for (const key of [keys].flat()) yield [system, key];
  }
  for (const form of expandForms(node)) {
    const children = [
      ...Object.values(form.properties ?? {}),
      form.items,
      form.additionalProperties,
    ];
    for (const child of children) {
      if (typeof child === 'object') yield* replacedKeys(child);
    }
  }
}

it('the tables contain every key that the schema replaces', () => {
  const known = TABLES.flatMap(({ system, keys }) => keys.map((key) => `${system} ${key}`));
  const claimed = [...replacedKeys(schemaTree())]
    .filter(([, key]) => /^[a-z][\w.[\]]*$/i.test(key) && !/^[A-Z_]+$/.test(key))
    .map(([system, key]) => {
      const name = system === 'kubenodesmith' ? 'rack-one' : 'small';
      return `${system} ${key.replaceAll('[]', '[0]').replace('NAME', name)}`;
    });
  expect(claimed.length).toBeGreaterThan(50);
  expect(claimed.filter((key) => !known.some((one) => one.startsWith(key)))).toStrictEqual([]);
});

describe('variables of externalgrpc', () => {
  const VARIABLES: Readonly<Record<string, string>> = {
    PM_API_URL: 'https://other.example.net:8006',
    PM_NODE: 'other',
    PM_SERVICE_TOKEN_ID: 'env@pve!env',
    PM_SERVICE_TOKEN_SECRET: 'planted-env-secret-1',
    PM_TLS_INSECURE: 'yes',
    PM_VERIFY_CERTIFICATES: '0',
    IMPORT_STORAGE: 'env-images',
    ISO_STORAGE: 'env-seeds',
    VM_STORAGE: 'env-disks',
    BRIDGE: 'vmbr9',
    CLOUD_IMAGE_URL: 'https://images.example.net/env.img',
    K3S_VERSION: 'v1.32.1+k3s1',
    K3S_SERVER_URL: 'https://env.example.net:6443',
    K3S_CLUSTER_TOKEN: 'planted-env-secret-2',
    SSH_PUBLIC_KEY: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEnvEnvEnvEnv env',
    PROVIDER_STATE_DB: '/data/state.db',
    PENDING_VM_TIMEOUT_SECONDS: '600',
    RECONCILE_INTERVAL_SECONDS: '30',
    PROVIDER_CONFIG: '/config/x.yaml',
    BIND_ADDRESS: '127.0.0.1',
    PORT: '6000',
    LOG_LEVEL: 'DEBUG',
  };
  const { yaml, notes, valueAt } = importText(
    'externalgrpc',
    readFixture('externalgrpc/full.yaml'),
    {
      environment: VARIABLES,
    },
  );
  const paths = notes.map(({ path }) => path);

  it.each(Object.keys(VARIABLES))('%s is carried or noted', (name) => {
    const isTold = yaml.includes(name) || paths.some((path) => path.includes(name));
    expect(isTold).toBe(true);
  });

  it('overrides the file', () => {
    expect(valueAt('proxmox.pve.endpoints')).toStrictEqual(['https://other.example.net:8006']);
    expect(valueAt('proxmox.pve.storage')).toStrictEqual({
      images: 'env-images',
      seeds: 'env-seeds',
      disks: 'env-disks',
    });
    expect(valueAt('pools.0.network.interfaces.0.bridge')).toBe('vmbr9');
    expect(valueAt('grpc.listen')).toBe('127.0.0.1:6000');
    expect(valueAt('log.level')).toBe('debug');
    expect(valueAt('pools.0.provisionTimeout')).toBe('10m');
    expect(valueAt('intervals.reconcile')).toBe('30s');
  });

  it('is not printed if it is a secret', () => {
    expect(yaml + JSON.stringify(notes)).not.toContain('planted-env-secret');
  });
});
