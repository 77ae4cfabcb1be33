// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { importText, readFixture } from '../testing/import-text.ts';

const PLAN = readFixture('vm-plan/config.yaml');
const TEMPLATE = readFixture('vm-plan/template.config.yml');
const VMS = readFixture('vm-plan/vm.config.yml');

describe("the plan's config.yaml", () => {
  it('logs in to full names and uses the hosts by their Proxmox names', () => {
    const result = importText('vm-plan', PLAN);
    expect(result.valueAt('proxmox.pve.transport.ssh.hosts')).toStrictEqual([
      'alder.example.net',
      'birch.example.net',
    ]);
    expect(result.valueAt('proxmox.pve.hosts.allow')).toStrictEqual(['alder', 'birch']);
  });

  it('does not guess the name of a host from its address', () => {
    const result = importText('vm-plan', PLAN.replace('alder.example.net', '192.0.2.7'));
    expect(result.valueAt('proxmox.pve.hosts.allow')).toBeUndefined();
    expect(result.notesAbout('proxmox_nodes').join()).toContain('action-required');
  });

  it('keeps disks apart from images, which an LVM storage cannot hold', () => {
    const result = importText('vm-plan', PLAN);
    expect(result.valueAt('proxmox.pve.storage')).toStrictEqual({ disks: 'fast' });
    expect(result.notesAbout('vm_template.storage_pool').join()).toContain('LVM');
  });

  it('says that an image without checksum is not verified', () => {
    const result = importText('vm-plan', PLAN.replace(/ {2}checksum_url: .*\n/, ''));
    expect(result.valueAt('images.noble-base.unverified')).toBe(true);
  });

  it('moves our VM ids away from the id of the template', () => {
    const result = importText('vm-plan', PLAN.replace('id: 9100', 'id: 20500'));
    expect(result.valueAt('templates.noble-base.id')).toBe(20_500);
    expect(result.valueAt('proxmox.pve.vmIds')).toBe('30000-39999');
  });

  it('takes any name of a size that can stand here', () => {
    const text = PLAN.replace('Extra_Large:', '"extra large!":');
    const result = importText('vm-plan', text);
    expect(result.valueAt('sizes.extra-large.cpu')).toBe(16);
    expect(result.notesAbout('vm_sizes.extra large!').join()).toContain("became 'extra-large'");
  });

  it('completes a size that says only half', () => {
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
  ])('says of %s that it was not carried', (line, path) => {
    const result = importText('vm-plan', `proxmox_nodes: [alder]\n${line}\n`);
    expect(result.notesAbout(path).join()).toContain('has no value');
  });

  it('works with nothing but hosts', () => {
    const result = importText('vm-plan', 'proxmox_nodes: [alder]');
    expect(result.valueAt('proxmox.pve.transport.ssh.privateKeyFile')).toBe('~/.ssh/id_ed25519');
    expect(result.notesAbout('ssh_private_key_path').join()).toContain('placeholder');
    expect(result.valueAt('templates')).toBeUndefined();
  });

  it('notes keys that the plan does not have', () => {
    expect(importText('vm-plan', `${PLAN}network: static\n`).notesAbout('network')).toHaveLength(1);
  });
});

describe('template.config.yml', () => {
  it('writes what the script does, not what the ignored keys say', () => {
    const result = importText('vm-plan', TEMPLATE);
    expect(result.valueAt('templates.bookworm-base')).toMatchObject({
      cpu: 1,
      memory: '2Gi',
      bridge: 'vmbr0',
    });
  });

  it('takes the defaults of the script', () => {
    const text = TEMPLATE.replace(/ {2}name: .*\n/, '').replace(/ {2}storage_pool: .*\n/, '');
    const result = importText('vm-plan', text);
    expect(result.valueAt('templates.vm-9200.name')).toBe('vm-9200');
    expect(result.valueAt('proxmox.pve.storage.disks')).toBe('local-lvm');
  });

  it('does not read host, username and port either', () => {
    const result = importText(
      'vm-plan',
      TEMPLATE.replace('ssh:\n', 'ssh:\n  host: other\n  port: 9\n'),
    );
    expect(result.valueAt('proxmox.pve.transport.ssh.hosts')).toStrictEqual(['cedar.example.net']);
    expect(result.notesAbout('ssh.port').join()).toContain('only url is read');
  });

  it.each(['ssh://nobody', 'cedar.example.net', 'http://cedar', 'ssh://'])('url %s', (url) => {
    const result = importText(
      'vm-plan',
      TEMPLATE.replace('ssh://admin@cedar.example.net:2222', url),
    );
    const hosts = result.valueAt('proxmox.pve.transport.ssh.hosts');
    expect(hosts).toStrictEqual([url === 'ssh://nobody' ? 'nobody' : 'proxmox.invalid']);
  });

  it('does not print a password in the URL', () => {
    const text = TEMPLATE.replace('admin@', 'admin:planted-in-url@');
    const { yaml, notes } = importText('vm-plan', text);
    expect(yaml + JSON.stringify(notes)).not.toContain('planted-in-url');
  });
});

describe('vm.config.yml', () => {
  it('keeps what all VMs share', () => {
    const result = importText('vm-plan', VMS);
    expect(result.valueAt('templates')).toStrictEqual({
      'bookworm-base': { name: 'bookworm-base' },
    });
    expect(result.valueAt('ssh')).toStrictEqual({
      user: 'deploy',
      publicKeyFiles: ['~/.ssh/deploy.pub'],
    });
  });

  it('says where VMs differ', () => {
    const text = VMS.replace(
      /ciuser: deploy([\s\S]*)ciuser: deploy/,
      'ciuser: deploy$1ciuser: other',
    );
    expect(importText('vm-plan', text).notesAbout('vms[1].ciuser').join()).toContain(
      'the same user',
    );
  });

  it('says that storage had no effect and that VMs are made by hand', () => {
    const result = importText('vm-plan', VMS);
    expect(result.notesAbout('proxmox.storage').join()).toContain('ignored-by-source');
    expect(result.notesAbout('vms[1].vmid').join()).toContain('vm create');
  });
});
