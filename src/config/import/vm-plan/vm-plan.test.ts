// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { importText, readFixture } from '../testing/import-text.ts';

const PLAN = readFixture('vm-plan/config.yaml');
const TEMPLATE = readFixture('vm-plan/template.config.yml');
const VMS = readFixture('vm-plan/vm.config.yml');

describe('config.yaml of the plan', () => {
  it('uses full names for SSH and short names for Proxmox hosts', () => {
    const result = importText('vm-plan', PLAN);
    expect(result.valueAt('proxmox.pve.transport.ssh.hosts')).toStrictEqual([
      'alder.example.net',
      'birch.example.net',
    ]);
    expect(result.valueAt('proxmox.pve.hosts.allow')).toStrictEqual(['alder', 'birch']);
  });

  it('does not derive a Proxmox host name from an IP address', () => {
    const result = importText('vm-plan', PLAN.replace('alder.example.net', '192.0.2.7'));
    expect(result.valueAt('proxmox.pve.hosts.allow')).toBeUndefined();
    expect(result.notesAbout('proxmox_nodes').join()).toContain('action-required');
  });

  it('uses separate storages for disks and images', () => {
    const result = importText('vm-plan', PLAN);
    expect(result.valueAt('proxmox.pve.storage')).toStrictEqual({ disks: 'fast' });
    expect(result.notesAbout('vm_template.storage_pool').join()).toContain('LVM');
  });

  it('notes an image without checksum', () => {
    const result = importText('vm-plan', PLAN.replace(/ {2}checksum_url: .*\n/, ''));
    expect(result.valueAt('images.noble-base.unverified')).toBe(true);
  });

  it('sets a VM id range without the template id', () => {
    const result = importText('vm-plan', PLAN.replace('id: 9100', 'id: 20500'));
    expect(result.valueAt('templates.noble-base.id')).toBe(20_500);
    expect(result.valueAt('proxmox.pve.vmIds')).toBe('30000-39999');
  });

  it('keeps size names that are valid', () => {
    const text = PLAN.replace('Extra_Large:', '"extra large!":');
    const result = importText('vm-plan', text);
    expect(result.valueAt('sizes.extra-large.cpu')).toBe(16);
    expect(result.notesAbout('vm_sizes.extra large!').join()).toContain("became 'extra-large'");
  });

  it('completes a partial size with placeholders', () => {
    const result = importText('vm-plan', 'vm_sizes:\n  tiny: { disk_gb: 5 }\n  odd: 3\n');
    expect(result.valueAt('sizes.tiny')).toStrictEqual({ disk: '5Gi', cpu: 2, memory: '4Gi' });
    expect(result.notesAbout('vm_sizes.odd').join()).toContain('must be a mapping');
  });

  it.each([
    ['vm_sizes: { x: null }', 'vm_sizes.x'],
    ['vm_sizes:', 'vm_sizes'],
    ['vm_template:', 'vm_template'],
    ['cloud_init: null', 'cloud_init'],
    ['readiness_check: ~', 'readiness_check'],
  ])('notes that %s was not imported', (line, path) => {
    const result = importText('vm-plan', `proxmox_nodes: [alder]\n${line}\n`);
    expect(result.notesAbout(path).join()).toContain('has no value');
  });

  it('imports a file with only hosts', () => {
    const result = importText('vm-plan', 'proxmox_nodes: [alder]');
    expect(result.valueAt('proxmox.pve.transport.ssh.privateKeyFile')).toBe('~/.ssh/id_ed25519');
    expect(result.notesAbout('ssh_private_key_path').join()).toContain('placeholder');
    expect(result.valueAt('templates')).toBeUndefined();
  });

  it('notes unknown keys', () => {
    expect(importText('vm-plan', `${PLAN}network: static\n`).notesAbout('network')).toHaveLength(1);
  });
});

describe('template.config.yml', () => {
  it('sets the fixed values of the script instead of ignored keys', () => {
    const result = importText('vm-plan', TEMPLATE);
    expect(result.valueAt('templates.bookworm-base')).toMatchObject({
      cpu: 1,
      memory: '2Gi',
      bridge: 'vmbr0',
    });
  });

  it('sets the defaults of the script', () => {
    const text = TEMPLATE.replace(/ {2}name: .*\n/, '').replace(/ {2}storage_pool: .*\n/, '');
    const result = importText('vm-plan', text);
    expect(result.valueAt('templates.vm-9200.name')).toBe('vm-9200');
    expect(result.valueAt('proxmox.pve.storage.disks')).toBe('local-lvm');
  });

  it('ignores host, username and port', () => {
    const result = importText(
      'vm-plan',
      TEMPLATE.replace('ssh:\n', 'ssh:\n  host: other\n  port: 9\n'),
    );
    expect(result.valueAt('proxmox.pve.transport.ssh.hosts')).toStrictEqual(['cedar.example.net']);
    expect(result.notesAbout('ssh.port').join()).toContain('only url is read');
  });

  it.each(['ssh://nobody', 'cedar.example.net', 'http://cedar', 'ssh://'])(
    'sets a placeholder for url %s',
    (url) => {
      const result = importText(
        'vm-plan',
        TEMPLATE.replace('ssh://admin@cedar.example.net:2222', url),
      );
      const hosts = result.valueAt('proxmox.pve.transport.ssh.hosts');
      expect(hosts).toStrictEqual([url === 'ssh://nobody' ? 'nobody' : 'proxmox.invalid']);
    },
  );

  it('does not print a password in the URL', () => {
    const text = TEMPLATE.replace('admin@', 'admin:planted-in-url@');
    const { yaml, notes } = importText('vm-plan', text);
    expect(yaml + JSON.stringify(notes)).not.toContain('planted-in-url');
  });
});

describe('vm.config.yml', () => {
  it('imports the settings that all VMs share', () => {
    const result = importText('vm-plan', VMS);
    expect(result.valueAt('templates')).toStrictEqual({
      'bookworm-base': { name: 'bookworm-base' },
    });
    expect(result.valueAt('ssh')).toStrictEqual({
      user: 'deploy',
      publicKeyFiles: ['~/.ssh/deploy.pub'],
    });
  });

  it('notes different users and keys', () => {
    const text = VMS.replace(
      /ciuser: deploy([\s\S]*)ciuser: deploy/,
      'ciuser: deploy$1ciuser: other',
    );
    expect(importText('vm-plan', text).notesAbout('vms[1].ciuser').join()).toContain(
      'the same user',
    );
  });

  it('notes that storage had no effect and that VMs are created manually', () => {
    const result = importText('vm-plan', VMS);
    expect(result.notesAbout('proxmox.storage').join()).toContain('ignored-by-source');
    expect(result.notesAbout('vms[1].vmid').join()).toContain('pvescaler vm create');
  });
});
