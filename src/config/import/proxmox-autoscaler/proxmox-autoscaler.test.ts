// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { SourceEnvironment } from '../result.ts';
import {
  type ImportedText,
  importProblems,
  importText,
  readFixture,
} from '../testing/import-text.ts';

const SETTINGS = readFixture('proxmox-autoscaler/settings.py');

function withSettings(lines: string, environment: SourceEnvironment = {}): ImportedText {
  return importText('proxmox-autoscaler', `${SETTINGS}\n${lines}\n`, { environment });
}

function without(key: string): ImportedText {
  return importText('proxmox-autoscaler', SETTINGS.replace(new RegExp(`^${key} = .*$`, 'm'), ''));
}

describe('credentials', () => {
  it('uses all three variables or none of them', () => {
    const some = withSettings('', { PXE_HOST: 'env.example.net', PXE_USER: 'env@pve' });
    expect(some.valueAt('proxmox.pve.endpoints')).toStrictEqual(['https://198.51.100.7:8006']);
    const all = withSettings('', {
      PXE_HOST: 'env.example.net',
      PXE_USER: 'env@pve',
      PXE_PASSWORD: 'planted-env-password',
    });
    expect(all.valueAt('proxmox.pve.endpoints')).toStrictEqual(['https://env.example.net:8006']);
    expect(all.valueAt('proxmox.pve.user')).toBe('env@pve');
    expect(all.yaml + JSON.stringify(all.notes)).not.toContain('planted');
  });

  it('notes which variable overrides the value', () => {
    expect(withSettings('').notesAbout('pxe_user').join()).toContain('PXE_USER');
  });

  it('keeps the API certificate unverified', () => {
    expect(withSettings('').valueAt('proxmox.pve.tls.insecure')).toBe(true);
  });

  it('puts brackets around an IPv6 address', () => {
    expect(withSettings("pxe_host = 'fd00::7'").valueAt('proxmox.pve.endpoints')).toStrictEqual([
      'https://[fd00::7]:8006',
    ]);
  });

  it('sets placeholders for values of unset variables', () => {
    const result = importText('proxmox-autoscaler', "import os\npxe_host = os.environ['PXE_HOST']");
    expect(result.valueAt('proxmox.pve.endpoints')).toStrictEqual(['https://pve.invalid:8006']);
    expect(result.notesAbout('pxe_host').join()).toContain('PXE_HOST');
  });
});

it('uses linked clones and the whole template name', () => {
  const result = withSettings('');
  expect(result.valueAt('pools.0.from')).toStrictEqual({ template: 'worker', clone: 'linked' });
  expect(result.notesAbout('pxe_autoscaled_node_template_vm').join()).toContain('whole name');
});

it('numbers machines after the prefix and converts the pool name to a DNS label', () => {
  const result = withSettings('');
  expect(result.valueAt('pools.0.names')).toStrictEqual({
    prefix: 'worker.node',
    suffix: 'ordinal',
  });
  expect(result.valueAt('pools.0.name')).toBe('worker-node');
});

it('keeps the label with its fixed value', () => {
  expect(withSettings('').valueAt('pools.0.labels')).toStrictEqual({
    'example.net/scaled': 'true',
  });
});

describe('addresses', () => {
  it.each([
    ["'25'", 25, 0],
    ['25', 25, 1],
    ["'/25'", 25, 1],
    ["'255.255.255.128'", 25, 1],
  ])('converts mask %s to prefix %d', (mask, prefix, notes) => {
    const result = withSettings(`pxe_autoscaled_node_ip_mask = ${mask}`);
    expect(result.valueAt('pools.0.network.ip.prefix')).toBe(prefix);
    expect(result.notesAbout('pxe_autoscaled_node_ip_mask')).toHaveLength(notes);
  });

  it('sets the name server also with DHCP and ignores the other address keys', () => {
    const result = withSettings("pxe_autoscaled_node_network_mode = 'dhcp'");
    expect(result.valueAt('pools.0.network.ip')).toStrictEqual({
      v4: 'dhcp',
      v6: 'off',
      dns: ['198.51.100.2'],
    });
    expect(result.notesAbout('pxe_autoscaled_node_ip_pool').join()).toContain('ignored-by-source');
  });

  it('notes an invalid network mode', () => {
    const result = withSettings("pxe_autoscaled_node_network_mode = 'DHCP'");
    expect(result.notesAbout('pxe_autoscaled_node_network_mode').join()).toContain(
      'removes every new VM',
    );
  });

  it('uses DHCP when the address range is incomplete', () => {
    for (const key of ['pxe_autoscaled_node_ip_pool', 'pxe_autoscaled_node_ip_mask']) {
      const result = without(key);
      expect(result.valueAt('pools.0.network.ip')).toBe('dhcp');
      expect(result.notesAbout(key).join()).toContain('action-required');
    }
  });

  it('limits the number of machines to the number of addresses', () => {
    const result = withSettings('max_size = 40\nmin_size = 12');
    expect(result.valueAt('pools.0.limits')).toStrictEqual({ min: 10, max: 10 });
    expect(result.notesAbout('max_size').join()).toContain('addresses');
  });

  it('does not import a range outside its subnet', () => {
    const result = withSettings("pxe_autoscaled_node_ip_pool = '198.51.100.120-198.51.100.140'");
    expect(result.valueAt('pools.0.network.ip')).toBe('dhcp');
    expect(result.notesAbout('pxe_autoscaled_node_ip_pool').join()).toContain(
      'is not inside one subnet',
    );
  });
});

describe('missing settings', () => {
  it('uses the shipped default where the README of the source system differs', () => {
    const result = without('min_size');
    expect(result.valueAt('pools.0.limits.min')).toBe(2);
    expect(result.notesAbout('min_size').join()).toContain('README documents 0');
  });

  it('adds no note for settings without effect', () => {
    const result = without('max_node_provision_time');
    expect(result.valueAt('pools.0.provisionTimeout')).toBeUndefined();
    expect(result.notesAbout('max_node_provision_time')).toStrictEqual([]);
  });

  it('notes that early versions had no cleanup delay', () => {
    const result = without('pxe_vm_lost_cleanup_delay');
    expect(result.valueAt('cleanup.lostAfter')).toBe('5m');
    expect(result.notesAbout('pxe_vm_lost_cleanup_delay').join()).toContain('early versions');
  });
});

it('notes that unimplemented settings take effect here', () => {
  const result = withSettings('');
  for (const key of [
    'max_node_provision_time',
    'max_total_unready_percentage',
    'ok_total_unready_count',
  ]) {
    expect(result.notesAbout(key).join()).toContain('no effect in the source system');
  }
});

it('converts the percentage of usage to a ratio of requests', () => {
  const result = withSettings('');
  expect(result.valueAt('pools.0.scaleDown.utilizationThreshold')).toBe(0.35);
  expect(result.notesAbout('scale_down_utilization_threshold').join()).toContain('request');
});

it('does not import values that need Python to evaluate', () => {
  const result = withSettings(
    'max_size = compute()\nfor x in y:\n    min_size = 3\nscan-interval = 4',
  );
  expect(result.notesAbout('max_size').join()).toContain('the import does not run');
  expect(result.notesAbout('(statement)')).toHaveLength(2);
  expect(result.valueAt('pools.0.limits.min')).toBe(1);
});

it('notes an unknown setting', () => {
  expect(withSettings('max_sise = 4').notesAbout('max_sise').join()).toContain('not a setting');
});

it('reads the module in a ConfigMap with the lines of the manifest', () => {
  const text = readFixture('proxmox-autoscaler/configmap.yaml');
  const line = text.split('\n').findIndex((one) => one.includes('max_size')) + 1;
  const note = importText('proxmox-autoscaler', text).notes.find(({ path }) => path === 'max_size');
  expect(note?.at).toStrictEqual({ line, column: 5 });
});

it('accepts the key settings.py and quoted text', () => {
  const text = `kind: ConfigMap\ndata:\n  settings.py: "pxe_host = 'h1'\\nmax_size = 2\\n"\n`;
  const result = importText('proxmox-autoscaler', text);
  expect(result.valueAt('proxmox.pve.endpoints')).toStrictEqual(['https://h1:8006']);
});

it('reports syntax errors with the lines of the manifest', () => {
  const text = 'kind: ConfigMap\ndata:\n  settings: |\n    min_size = 1\n    pxe_host = "h\n';
  expect(importProblems('proxmox-autoscaler', text)).toMatchObject([{ line: 5, column: 16 }]);
});
