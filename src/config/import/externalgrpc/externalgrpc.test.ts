// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { type ImportedText, importText, readFixture } from '../testing/import-text.ts';

const MINIMAL = readFixture('externalgrpc/minimal.yaml');

function withProxmox(line: string): ImportedText {
  return importText('externalgrpc', MINIMAL.replace('proxmox:\n', `proxmox:\n  ${line}\n`));
}

function withGroups(groups: string): ImportedText {
  return importText(
    'externalgrpc',
    MINIMAL.replace(/node_groups:[\s\S]*$/, `node_groups:\n${groups}\n`),
  );
}

function withGroup(lines: string): ImportedText {
  return withGroups(`  - id: a\n    ${lines.replaceAll('\n', '\n    ')}`);
}

describe('the Proxmox API', () => {
  it('removes the API path from the URL', () => {
    const text = MINIMAL.replace(':8006', ':8006/api2/json//');
    expect(importText('externalgrpc', text).valueAt('proxmox.pve.endpoints')).toStrictEqual([
      'https://192.0.2.5:8006',
    ]);
  });

  it('keeps the API certificate unverified by default and adds a note', () => {
    const result = importText('externalgrpc', MINIMAL);
    expect(result.valueAt('proxmox.pve.tls.insecure')).toBe(true);
    expect(result.notesAbout('proxmox.tls_insecure')).toHaveLength(1);
  });

  it.each([
    ['tls_insecure: "off"', false],
    ['tls_insecure: no', false],
    ['tls_insecure: maybe', false],
    ['tls_insecure: "Y"', true],
    ['tls_insecure: 1', true],
    ['tls_insecure: "ON"', true],
  ])('reads %s as %s', (line, value) => {
    expect(withProxmox(line).valueAt('proxmox.pve.tls.insecure')).toBe(value);
  });

  it('maps verify_certificates to the image download', () => {
    const result = withProxmox('verify_certificates: true');
    expect(result.valueAt('images.cloud.verifyCertificates')).toBe(true);
    expect(result.valueAt('proxmox.pve.tls.insecure')).toBe(true);
    expect(result.notesAbout('proxmox.verify_certificates').join()).toContain(
      'not to the Proxmox API',
    );
  });

  it.each(['api_url', 'node', 'token_id', 'cloud_image_url'])(
    'takes a null %s, which is the text None there, for absent',
    (key) => {
      const text = MINIMAL.replace(new RegExp(`${key}: .*`), `${key}:`);
      const result = importText('externalgrpc', text);
      expect(result.notesAbout(`proxmox.${key}`).join()).toContain("'None'");
      expect(result.notesAbout(`proxmox.${key}`).join()).toContain('action-required');
      expect(result.yaml).not.toContain('None');
    },
  );
});

it('imports a file without sections with placeholders', () => {
  const { notes, valueAt } = importText('externalgrpc', 'node_groups: []');
  expect(notes.filter(({ severity }) => severity === 'action-required').length).toBeGreaterThan(6);
  expect(valueAt('join.k3s.server')).toBe('https://k3s.invalid:6443');
  expect(valueAt('pools')).toBeUndefined();
});

describe('variables', () => {
  it('ignores blank variables', () => {
    const result = importText('externalgrpc', MINIMAL, { environment: { PM_NODE: '  ' } });
    expect(result.valueAt('proxmox.pve.hosts.allow')).toStrictEqual(['solo']);
  });

  it.each([
    ['60', '2m'],
    ['-5', '2m'],
    ['soon', '15m'],
    ['1800', '30m'],
  ])('PENDING_VM_TIMEOUT_SECONDS=%s becomes %s', (value, timeout) => {
    const result = importText('externalgrpc', MINIMAL, {
      environment: { PENDING_VM_TIMEOUT_SECONDS: value },
    });
    expect(result.valueAt('pools.0.provisionTimeout')).toBe(timeout);
  });

  it.each([
    ['1', '5s'],
    ['x', '20s'],
    ['45', '45s'],
  ])('RECONCILE_INTERVAL_SECONDS=%s becomes %s', (value, interval) => {
    const result = importText('externalgrpc', MINIMAL, {
      environment: { RECONCILE_INTERVAL_SECONDS: value },
    });
    expect(result.valueAt('intervals.reconcile')).toBe(interval);
  });

  it('never uses the database of the source system as state', () => {
    const result = importText('externalgrpc', MINIMAL, {
      environment: { PROVIDER_STATE_DB: '/tmp/theirs.db' },
    });
    expect(result.yaml).not.toContain('theirs.db');
    expect(result.notesAbout('PROVIDER_STATE_DB (environment)').join()).toContain('unset');
  });

  it.each([
    [{ PORT: '6000' }, '0.0.0.0:6000'],
    [{ BIND_ADDRESS: '::' }, '[::]:50051'],
  ])('sets the listen address from %o', (environment, listen) => {
    expect(importText('externalgrpc', MINIMAL, { environment }).valueAt('grpc.listen')).toBe(
      listen,
    );
  });

  it('does not import an invalid port', () => {
    const result = importText('externalgrpc', MINIMAL, { environment: { PORT: 'http' } });
    expect(result.valueAt('grpc.listen')).toBeUndefined();
    expect(result.notesAbout('PORT (environment)').join()).toContain('not imported');
  });
});

describe('registries', () => {
  const withK3s = (lines: string) =>
    importText('externalgrpc', MINIMAL.replace('k3s:\n', `k3s:\n${lines}\n`));

  it('uses the registries file only without inline text', () => {
    const result = withK3s("  registries_yaml: ''\n  registries_yaml_file: /config/r.yaml");
    expect(result.valueAt('join.k3s.registriesFile')).toBe('/config/r.yaml');
  });

  it('does not copy the inline text', () => {
    const result = withK3s('  registries_yaml: |\n    auth: hunter2-hunter2');
    expect(result.yaml).not.toContain('hunter2');
    expect(result.valueAt('join.k3s.registriesFile')).toBe('/etc/pvescaler/registries.yaml');
  });
});

describe('node groups', () => {
  it('sets the defaults of the source system', () => {
    const result = withGroups('  - id: a');
    expect(result.valueAt('pools.0.limits')).toStrictEqual({ min: 0, max: 10 });
    expect(result.valueAt('pools.0.size')).toStrictEqual({ cpu: 2, memory: '2Gi', disk: '20Gi' });
    expect(result.valueAt('pools.0.names.prefix')).toBe('ca-a');
  });

  it('uses the last of two groups with the same id', () => {
    const result = withGroups('  - {id: a, cores: 1}\n  - {id: b}\n  - {id: a, cores: 7}');
    expect(result.valueAt('pools.0.size.cpu')).toBe(7);
    expect(result.valueAt('pools.2')).toBeUndefined();
    expect(result.notesAbout('node_groups[0]').join()).toContain('uses the later one');
  });

  it('converts names to unique DNS labels', () => {
    const result = withGroups('  - id: Big_Pool\n  - id: big-pool\n  - id: "!!"');
    expect([0, 1, 2].map((index) => result.valueAt(`pools.${index}.name`))).toStrictEqual([
      'big-pool',
      'big-pool-2',
      'pool',
    ]);
    expect(result.notesAbout('node_groups[0].id').join()).toContain("'Big_Pool' became 'big-pool'");
  });

  it('does not import a group without id', () => {
    expect(withGroups('  - cores: 3\n  - id: a').notesAbout('node_groups[0]').join()).toContain(
      'no id',
    );
  });

  it.each([
    ['disk_size: 1T', '1024Gi'],
    ['disk_size: 1536M', '1536Mi'],
    ['disk_size: +5G', undefined],
    ['disk_size: ""', undefined],
    ['disk_size: huge', undefined],
  ])('%s becomes disk size %s', (line, disk) => {
    const result = withGroup(line);
    expect(result.valueAt('pools.0.size.disk')).toBe(disk);
    expect(result.notesAbout('node_groups[0].disk_size')).toHaveLength(disk === undefined ? 1 : 0);
  });

  it.each([
    ['balloon_mb: -1', 0],
    ['balloon_mb: 1024', '1Gi'],
  ])('%s becomes balloon %s', (line, balloon) => {
    expect(withGroup(line).valueAt('pools.0.balloon')).toBe(balloon);
  });

  it('does not import a balloon that is larger than the memory', () => {
    const result = withGroup('balloon_mb: 9999');
    expect(result.valueAt('pools.0.balloon')).toBeUndefined();
    expect(result.notesAbout('node_groups[0].balloon_mb').join()).toContain('more than the memory');
  });

  it('raises a maximum below the minimum', () => {
    const result = withGroup('min_size: 5\nmax_size: 2');
    expect(result.valueAt('pools.0.limits')).toStrictEqual({ min: 5, max: 5 });
    expect(result.notesAbout('node_groups[0].max_size').join()).toContain('action-required');
  });

  it('reads labels as key=value and notes invalid ones', () => {
    const result = withGroup('labels: [a=b=c, x=1, plain, "bad key=1", autoscaler.proxmox/vmid=3]');
    expect(result.valueAt('pools.0.labels')).toStrictEqual({ x: '1' });
    for (const index of [0, 2, 3, 4]) {
      expect(result.notesAbout(`node_groups[0].labels[${index}]`)).toHaveLength(1);
    }
  });

  it.each([
    ['gpu', 'gpu:NoSchedule'],
    ['gpu=yes', 'gpu=yes:NoSchedule'],
    ['gpu=yes:', 'gpu=yes:NoSchedule'],
    ['gpu:PreferNoSchedule', 'gpu:PreferNoSchedule'],
  ])('taint %s becomes %s', (taint, written) => {
    expect(withGroup(`taints: ["${taint}"]`).valueAt('pools.0.taints')).toStrictEqual([written]);
  });

  it('notes an invalid taint', () => {
    const result = withGroup('taints: ["a b:NoSchedule", "a:Never"]');
    expect(result.valueAt('pools.0.taints')).toStrictEqual([]);
    expect(result.notesAbout('node_groups[0].taints[1]').join()).toContain('not-imported');
  });

  it('reads numbers written as text and treats other values as absent', () => {
    const result = withGroup('cores: "6"\nmemory_mb: lots\nlabels: none');
    expect(result.valueAt('pools.0.size')).toMatchObject({ cpu: 6, memory: '2Gi' });
    expect(result.notesAbout('node_groups[0].memory_mb').join()).toContain(
      'must be a whole number',
    );
    expect(result.notesAbout('node_groups[0].labels').join()).toContain('must be a list');
  });
});

it('notes ignored keys at every level', () => {
  const text = `${MINIMAL}    color: red\nextra: 1\n`.replace(
    'k3s:\n',
    'k3s:\n  channel: stable\n',
  );
  const { notesAbout } = importText('externalgrpc', text);
  for (const path of ['extra', 'k3s.channel', 'node_groups[0].color']) {
    expect(notesAbout(path).join()).toContain('ignored-by-source');
  }
});

it('uses the last of two duplicate keys, like Python', () => {
  const result = withProxmox('node: first');
  expect(result.valueAt('proxmox.pve.hosts.allow')).toStrictEqual(['solo']);
  expect(result.notesAbout('proxmox.node').join()).toContain('duplicate key');
});

it('replaces values that our validation refuses and notes the reason', () => {
  const text = MINIMAL.replace('https://192.0.2.5:8006', 'http://192.0.2.5:8006').replace(
    'node: solo',
    'node: solo.example.net',
  );
  const result = importText('externalgrpc', text);
  expect(result.valueAt('proxmox.pve.endpoints')).toStrictEqual(['https://pve.invalid:8006']);
  expect(result.notesAbout('proxmox.api_url').join()).toContain('https://');
  expect(result.notesAbout('proxmox.node').join()).toContain('without a domain');
});
