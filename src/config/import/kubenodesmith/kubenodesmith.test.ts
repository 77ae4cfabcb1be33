// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  type ImportedText,
  importProblems,
  importText,
  readFixture,
} from '../testing/import-text.ts';

const FILE = readFixture('kubenodesmith/scaler-config.yaml');
const OPTIONS = 'providers.rack-one.options';

function changed(from: string | RegExp, to: string): ImportedText {
  expect(FILE).not.toBe(FILE.replace(from, to));
  return importText('kubenodesmith', FILE.replace(from, to));
}

/** Adds the option as the first entry and removes others of the same name. */
function withOption(name: string, value: string): ImportedText {
  const others = FILE.replace(new RegExp(`^ *- [{] name: ${name}, .*\\n`, 'm'), '');
  const entry = `vmOptions:\n        - { name: ${name}, value: ${value} }\n`;
  return importText('kubenodesmith', others.replace('vmOptions:\n', entry));
}

const FIRST = `${OPTIONS}.vmOptions[0]`;

describe('pollingInterval', () => {
  it.each([
    ['pollingInterval: 1h30m', '1h30m', 0],
    ['pollingInterval: 1.5m', '1.5m', 0],
    ['pollingInterval: 0', '30s', 0],
    ['pollingInterval: -5s', '30s', 0],
    ['pollingInterval:', '30s', 0],
    ['# none', '30s', 0],
    ['pollingInterval: 20', '20s', 1],
    ['pollingInterval: 1d', '30s', 1],
    ['pollingInterval: [1]', '30s', 1],
  ])('converts %s', (line, scan, notes) => {
    const result = changed('pollingInterval: 45s', line);
    expect(result.valueAt('intervals.scan')).toBe(scan);
    expect(result.notesAbout('pollingInterval')).toHaveLength(notes);
  });
});

describe('providers', () => {
  it('does not import other provider types and their pools', () => {
    const result = importText('kubenodesmith', FILE);
    expect(result.valueAt('proxmox.bare-metal')).toBeUndefined();
    expect(result.valueAt('pools.1')).toBeUndefined();
    expect(result.notesAbout('providers.bare-metal').join()).toContain('not of type proxmox');
    expect(result.notesAbout('nodePools[1]').join()).toContain('providerRef');
  });

  it('refers to the Secret with the credentials', () => {
    const ref = { name: 'rack-one-api', namespace: 'scaling' };
    expect(importText('kubenodesmith', FILE).valueAt('proxmox.rack-one.token')).toStrictEqual({
      idRef: ref,
      secretRef: ref,
    });
  });

  it.each(['upper: 4000', 'upper: 3000', '# none'])(
    'sets a placeholder for an invalid range of ids: %s',
    (line) => {
      const result = changed('upper: 4099', line);
      expect(result.valueAt('proxmox.rack-one.vmIds')).toBe('20000-20999');
      const path = `${OPTIONS}.vmIDRange.lower, ${OPTIONS}.vmIDRange.upper`;
      expect(result.notesAbout(path).join()).toContain('action-required');
    },
  );

  it('notes the meaning of an empty managedNodeTag', () => {
    const result = changed('managedNodeTag: scaled-by-smith', 'managedNodeTag: ""');
    expect(result.valueAt('proxmox.rack-one.managedTag')).toBeUndefined();
    expect(result.notesAbout(`${OPTIONS}.managedNodeTag`).join()).toContain('every VM');
  });

  it('adds the memory overhead to every pool of the provider', () => {
    expect(importText('kubenodesmith', FILE).valueAt('pools.0.memoryOverhead')).toBe('1536Mi');
  });

  it('merges two providers of one Proxmox cluster into one region', () => {
    const second = [
      '  Second_One:',
      '    type: proxmox',
      '    credentialsRef: { name: x, namespace: y }',
      '    options:',
      '      endpoint: https://rack1.example.net:8006/api2/json/',
      '      nodeWhitelist: [yew]',
      '      vmIDRange: { lower: 4050, upper: 4060 }',
      'nodePools:',
      '  - { name: other, providerRef: Second_One }',
    ];
    const result = changed('nodePools:', second.join('\n'));
    expect(result.valueAt('proxmox.second-one')).toBeUndefined();
    expect(result.valueAt('pools.0.regions')).toStrictEqual(['rack-one']);
    expect(result.valueAt('pools.0.placement.hosts.allow')).toStrictEqual(['yew']);
    const first = importText('kubenodesmith', FILE).valueAt('proxmox.rack-one.hosts.allow');
    expect(first).not.toContain('yew');
    expect(result.valueAt('pools.1.placement.hosts.allow')).toStrictEqual(first);
    expect(result.valueAt('proxmox.rack-one.hosts.allow')).toStrictEqual([first, 'yew'].flat());
    expect(result.notesAbout('providers.Second_One').join()).toContain(
      'one Proxmox cluster is one region',
    );
  });

  it('sets a separate VM id range for each region', () => {
    const second =
      '  b:\n    type: proxmox\n    options: { endpoint: "https://b:8006", vmIDRange: { lower: 4050, upper: 4200 } }\nnodePools:';
    const result = changed('nodePools:', second);
    expect(result.valueAt('proxmox.b.vmIds')).toBe('20000-20999');
    expect(result.valueAt('proxmox.b.token.secretRef.name')).toBe('proxmox');
  });

  it('sets a placeholder region without a Proxmox provider', () => {
    const result = importText('kubenodesmith', 'schemaVersion: v1alpha1\nproviders: {}\n');
    expect(result.valueAt('proxmox.pve.endpoints')).toStrictEqual(['https://pve.invalid:8006']);
  });
});

describe('unknown keys', () => {
  it.each([
    ['schemaVersion: v1alpha1', 'schemaVersion: v1alpha1\nlogLevel: debug', 'logLevel'],
    ['    type: proxmox', '    type: proxmox\n    kind: x', 'providers.rack-one.kind'],
    ['      vmMemOverheadMiB', '      vmTags: a\n      vmMemOverheadMiB', `${OPTIONS}.vmTags`],
    [
      '      architecture',
      '      cpuCores: 4\n      architecture',
      'nodePools[0].machineTemplate.cpuCores',
    ],
    ['      minNodes: 1', '      minNode: 1', 'nodePools[0].limits.minNode'],
    ['      batchSize: 2', '      batchSize: 2\n      wait: 1s', 'nodePools[0].scaleUp.wait'],
  ])('are noted in %s', (from, to, path) => {
    expect(changed(from, to).notesAbout(path).join()).toContain('is an error in the source system');
  });

  it('get a hint for documented-only keys and typing mistakes', () => {
    const tags = changed('      vmMemOverheadMiB', '      vmTags: a\n      vmMemOverheadMiB');
    expect(tags.notesAbout(`${OPTIONS}.vmTags`).join()).toContain('its examples contain it');
    const typo = changed('minNodes: 1', 'minNode: 1');
    expect(typo.notesAbout('nodePools[0].limits.minNode').join()).toContain(
      "did you mean 'minNodes'?",
    );
  });
});

it('refuses duplicate keys, like its loader', () => {
  const text = FILE.replace('pollingInterval: 45s', 'pollingInterval: 45s\npollingInterval: 50s');
  expect(importProblems('kubenodesmith', text)).toMatchObject([{ line: 3, column: 1 }]);
});

it('reads another schemaVersion with a note', () => {
  const result = changed('v1alpha1', 'v2');
  expect(result.notesAbout('schemaVersion').join()).toContain('not v1alpha1');
});

describe('pools', () => {
  it('uses the default pool label of the source system', () => {
    const result = changed(/ {4}poolLabelKey: .*\n/, '');
    expect(result.valueAt('pools.0.groupLabel')).toBe('topology.kubenodesmith.io/pool');
  });

  it('sets a number for no limit, because 0 disables a pool', () => {
    const result = changed('maxNodes: 6', 'maxNodes: 0');
    expect(result.valueAt('pools.0.limits.max')).toBe(100);
    expect(result.notesAbout('nodePools[0].limits.maxNodes').join()).toContain('means no limit');
  });

  it('notes the different meaning of minNodes', () => {
    const result = importText('kubenodesmith', FILE);
    expect(result.notesAbout('nodePools[0].limits.minNodes').join()).toContain('always exists');
  });

  it('raises a maximum below the minimum', () => {
    const result = changed('minNodes: 1', 'minNodes: 9');
    expect(result.valueAt('pools.0.limits')).toMatchObject({ min: 9, max: 9 });
  });

  it('uses the pool name without a prefix', () => {
    const result = changed('kubeNodeNamePrefix: smith-worker', 'kubeNodeNamePrefix: ""');
    expect(result.valueAt('pools.0.names')).toBeUndefined();
  });

  it('notes invalid labels and removes the pool label', () => {
    const result = changed('node-role.kubernetes.io/worker: ""', '"bad key": ""\n        ok: 5');
    expect(result.valueAt('pools.0.labels')).toStrictEqual({ ok: '5' });
    expect(result.notesAbout('nodePools[0].machineTemplate.labels.bad key')).toHaveLength(1);
  });

  it('works without limits, template and scaling', () => {
    const text = FILE.replace(
      /nodePools:[\s\S]*$/,
      'nodePools:\n  - { name: a, providerRef: rack-one }\n',
    );
    const result = importText('kubenodesmith', text);
    expect(result.valueAt('pools.0.limits')).toStrictEqual({ min: 0, max: 100, cpu: 0, memory: 0 });
    expect(result.valueAt('pools.0.size.max')).toStrictEqual({
      cpu: 8,
      memory: '16Gi',
      disk: '48Gi',
    });
  });
});

describe('network cards', () => {
  it('are numbered by position, in the order of their names', () => {
    const result = changed('- name: net0', '- name: net7');
    expect(result.valueAt('pools.0.network.interfaces.0.bridge')).toBe('vmbr4');
    expect(result.notesAbout(`${OPTIONS}.networkInterfaces[0].name`).join()).toContain(
      'becomes net1',
    );
  });

  it.each([
    ['"02:1A:2B"', '02:1a:2b', 0],
    ['"03:1a"', '02:1a', 1],
    ['"aa:zz:bb"', 'aa:bb', 1],
    ['"xx"', undefined, 1],
  ])('convert macPrefix %s', (prefix, written, notes) => {
    const result = changed('"02:1a:2b"', prefix);
    expect(result.valueAt('pools.0.network.interfaces.0.macPrefix')).toBe(written);
    expect(result.notesAbout(`${OPTIONS}.networkInterfaces[0].macPrefix`)).toHaveLength(notes);
  });

  it('get a note when there are none', () => {
    const result = changed(/ {6}networkInterfaces:[\s\S]*? {6}vmOptions:/, '      vmOptions:');
    expect(result.notesAbout(`${OPTIONS}.networkInterfaces`).join()).toContain('vmbr0');
  });

  it('do not import VLAN 0', () => {
    const result = changed('vlanTag: 42', 'vlanTag: 0');
    expect(result.valueAt('pools.0.network.interfaces.0.vlan')).toBeUndefined();
  });
});

describe('vmOptions', () => {
  it.each([
    ['args', '-nographic', 'not allowed'],
    ['hookscript', 'local:snippets/x', 'not allowed'],
    ['hostpci0', '"0000:01:00.0"', 'mapping'],
    ['protection', '1', 'not allowed'],
    ['scsi2', '/dev/sdb', 'absolute path'],
    ['colour', 'red', 'not a Proxmox VM option'],
    ['sshkeys', 'x', 'ssh.publicKeys'],
    ['ide2', '"local:iso/x.iso,media=cdrom"', 'not supported'],
    ['cipassword', 'planted-pass', 'not supported'],
  ])('%s is not imported', (name, value, why) => {
    const result = withOption(name, value);
    expect(result.notesAbout(`${FIRST} (${name})`).join()).toContain(why);
    expect(result.valueAt(`pools.0.vmOptions.${name}`)).toBeUndefined();
  });

  it.each([
    ['agent', '1', 1],
    ['machine', 'q35', 'q35'],
    ['hostpci0', 'mapping=gpu', 'mapping=gpu'],
    ['scsihw', 'virtio-scsi-single', 'virtio-scsi-single'],
  ])('%s is passed through', (name, value, written) => {
    expect(withOption(name, value).valueAt(`pools.0.vmOptions.${name}`)).toBe(written);
  });

  it.each([
    ['balloon', '512', 'pools.0.balloon', '512Mi'],
    ['onboot', '0', 'pools.0.onboot', false],
    ['pool', 'k8s', 'proxmox.rack-one.resourcePool', 'k8s'],
    ['ciuser', 'core', 'ssh.user', 'core'],
  ] as const)('%s has a key of its own', (...[name, value, path, written]) => {
    expect(withOption(name, value).valueAt(path)).toBe(written);
  });

  it('notes options that the source system overwrites', () => {
    for (const name of ['name', 'cores', 'net5']) {
      expect(withOption(name, 'x').notesAbout(`${FIRST} (${name})`).join()).toContain(
        'overwritten',
      );
    }
  });

  it('imports size, storage and flags of scsi0', () => {
    const result = importText('kubenodesmith', FILE);
    expect(result.valueAt('pools.0.disk')).toStrictEqual({
      storage: 'fast',
      discard: true,
      ssd: true,
    });
    expect(result.valueAt('pools.0.size.min')).toMatchObject({ disk: '48Gi' });
  });

  it('requires an image when scsi0 is imported from a volume', () => {
    const result = changed(
      'fast:48,discard=on,ssd=1',
      'fast:0,import-from=local:import/x.qcow2,backup=0',
    );
    const notes = result.notesAbout(`${OPTIONS}.vmOptions[6] (scsi0)`).join();
    expect(notes).toContain('images');
    expect(notes).toContain('backup');
    expect(result.yaml).toContain('REPLACE THIS: the source of new VMs');
  });

  it.each(['none', '/dev/sdb', 'fast:vm-1-disk-0'])('notes an unsupported scsi0 %s', (value) => {
    const result = changed('fast:48,discard=on,ssd=1', value);
    expect(result.notesAbout(`${OPTIONS}.vmOptions[6] (scsi0)`).join()).toContain(
      'action-required',
    );
  });

  it('does not give all machines the same address', () => {
    const result = changed('ip=dhcp', 'ip=10.0.0.5/24,gw=10.0.0.1');
    expect(result.valueAt('pools.0.network.ip')).toBeUndefined();
    expect(result.notesAbout(`${OPTIONS}.vmOptions[4] (ipconfig0)`).join()).toContain(
      'same address',
    );
  });

  it('sets a placeholder source unless the VM boots from the network', () => {
    const result = changed('order=scsi0;net0', 'order=scsi0');
    expect(result.yaml).toContain('REPLACE THIS: the source of new VMs');
  });

  it('uses the last of two options with the same name', () => {
    const result = changed('vmOptions:\n', 'vmOptions:\n        - { name: cpu, value: kvm64 }\n');
    expect(result.valueAt('pools.0.vmOptions.cpu')).toBe('host');
    expect(result.notesAbout(`${FIRST} (cpu)`).join()).toContain('ignored-by-source');
  });

  it('notes an entry without name or value', () => {
    const result = changed('vmOptions:\n', 'vmOptions:\n        - { name: x }\n');
    expect(result.notesAbout(FIRST).join()).toContain('needs a name and a value');
  });
});

it('reads the file in a ConfigMap with the lines of the manifest', () => {
  const inner = FILE.split('\n').map((line) => (line === '' ? '' : `    ${line}`));
  const text = [
    'apiVersion: v1',
    'kind: ConfigMap',
    'data:',
    '  scaler-config.yaml: |',
    ...inner,
  ].join('\n');
  const plain = importText('kubenodesmith', FILE).notes;
  const { notes } = importText('kubenodesmith', text);
  expect(notes.map(({ at }) => at?.line)).toStrictEqual(
    plain.map(({ at }) => (at === undefined ? undefined : at.line + 4)),
  );
});
