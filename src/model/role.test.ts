// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { findTemplates, type TemplateIdentity } from './role.ts';

function aTemplate(vmId: number, host: string, tags: readonly string[] = []) {
  return { vmId, host, name: 'ubuntu-cloud', tags, isTemplate: true };
}

function built(vmId: number, host: string, version: number) {
  return aTemplate(vmId, host, ['lab', 'pvescaler', 'template-ubuntu', `version-${version}`]);
}

const UBUNTU: TemplateIdentity = { key: 'ubuntu', id: 9_000, idByHost: {}, name: undefined };

function idsOf(vms: Parameters<typeof findTemplates>[0], identity = UBUNTU, cluster = 'lab') {
  return findTemplates(vms, identity, cluster).map(({ vmId }) => vmId);
}

describe('findTemplates', () => {
  it('finds the newest version on each host, whatever its id', () => {
    const vms = [
      built(9_000, 'pve1', 1),
      built(9_002, 'pve1', 2),
      built(9_001, 'pve2', 1),
      { ...built(9_003, 'pve3', 3), isTemplate: false },
    ];
    expect(idsOf(vms)).toEqual([9_002, 9_001]);
  });

  it('ignores newer versions that another cluster built', () => {
    const vms = [
      built(9_001, 'pve1', 1),
      aTemplate(9_005, 'pve1', ['other', 'template-ubuntu', 'version-7']),
    ];
    expect(idsOf(vms)).toEqual([9_001]);
    expect(idsOf(vms, UBUNTU, 'other')).toEqual([9_005]);
  });

  it('finds by id, id of the host or name where this cluster built none', () => {
    const vms = [aTemplate(9_000, 'pve1'), aTemplate(9_009, 'pve2'), built(9_001, 'pve3', 1)];
    expect(idsOf(vms)).toEqual([9_000, 9_001]);
    expect(idsOf(vms, { ...UBUNTU, id: undefined, idByHost: { pve2: 9_009 } })).toEqual([
      9_009, 9_001,
    ]);
    expect(idsOf(vms, { ...UBUNTU, id: undefined, name: 'ubuntu-cloud' })).toEqual([
      9_000, 9_009, 9_001,
    ]);
  });
});
