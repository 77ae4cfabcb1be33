// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { MachineId } from '../../model/machine.ts';
import { aMachine, aMachineId } from '../../ports/fakes/sample-records.ts';
import type { InterfaceSettings } from '../context/settings.ts';
import { aPool, aRegion, CLUSTER } from '../testing/settings.ts';
import {
  hardwareOf,
  macOf,
  markerOf,
  networkOf,
  seedFileName,
  seedOwner,
  tagsOf,
} from './vm-identity.ts';

describe('tagsOf', () => {
  const region = aRegion({ tags: ['pvescaler', 'Prod'] });

  it("has the region's tags, the pool's and the cluster's name, in lower case", () => {
    const tags = tagsOf({ pool: 'workers' }, region, { clusterName: 'Home' });
    expect(tags).toEqual(['ca-group-workers', 'home', 'prod', 'pvescaler']);
  });

  it('has each tag once', () => {
    const tags = tagsOf({ pool: 'workers' }, region, { clusterName: 'prod' });
    expect(tags).toEqual(['ca-group-workers', 'prod', 'pvescaler']);
  });
});

describe('seedOwner', () => {
  it('returns the machine of a seed of this cluster, and undefined for other files', () => {
    const name = seedFileName(CLUSTER, aMachineId(7));
    expect(seedOwner(name, CLUSTER)).toBe(aMachineId(7));
    expect(seedOwner(name, 'another')).toBeUndefined();
    expect(seedOwner('debian.iso', CLUSTER)).toBeUndefined();
  });
});

describe('macOf', () => {
  const id = 'a1b2c3d4-e5f6-4000-8000-000000000000' as MachineId;

  it.each([
    ['without a prefix', 0, undefined, '02:B2:C3:D4:E5:F6'],
    ['of the second interface', 1, undefined, '02:B2:C3:D4:E5:F7'],
    ['whose last octet overflows', 10, undefined, '02:B2:C3:D4:E5:00'],
    ['whose last octet has one digit', 11, undefined, '02:B2:C3:D4:E5:01'],
    ['with a prefix of three octets', 0, 'bc:24:11', 'BC:24:11:D4:E5:F6'],
    ['with a prefix of five octets', 2, 'bc:24:11:aa:bb', 'BC:24:11:AA:BB:F8'],
  ])('derives an address %s', (...[, index, prefix, mac]) => {
    expect(macOf(id, index, prefix)).toBe(mac);
  });
});

describe('networkOf', () => {
  const card = {
    model: 'virtio',
    bridge: 'vmbr0',
    vlan: undefined,
    mtu: undefined,
    queues: undefined,
    macPrefix: undefined,
    firewall: false,
  } as InterfaceSettings;

  it('has only what the settings name', () => {
    const mac = macOf(aMachineId(1), 0);
    expect(networkOf(aMachineId(1), card, 0)).toEqual({ model: 'virtio', bridge: 'vmbr0', mac });
  });

  it('has the VLAN, MTU, queues, firewall and prefix of the settings', () => {
    const all = { ...card, vlan: 5, mtu: 9_000, queues: 4, firewall: true, macPrefix: 'bc:24:11' };
    expect(networkOf(aMachineId(1), all, 1)).toEqual({
      model: 'virtio',
      bridge: 'vmbr0',
      mac: macOf(aMachineId(1), 1, 'bc:24:11'),
      vlan: 5,
      mtu: 9_000,
      queues: 4,
      firewall: true,
    });
  });
});

describe('hardwareOf', () => {
  it('has the memory of the machine and the overhead of its pool, and boots from its disk', () => {
    const machine = aMachine();
    const hardware = hardwareOf(machine, aPool({ memoryOverheadBytes: 512, balloonBytes: 7 }));
    expect(hardware).toMatchObject({
      cpus: machine.size.cpu,
      memoryBytes: machine.size.memoryBytes + 512,
      balloonBytes: 7,
      bootFrom: 'disk',
    });
    expect(hardware.networks).toHaveLength(aPool().network.interfaces.length);
  });

  it('boots a machine of a pool without an image from the network', () => {
    const pool = aPool({ source: { kind: 'netboot' } });
    expect(hardwareOf(aMachine(), pool).bootFrom).toBe('network');
  });
});

describe('markerOf', () => {
  it('has the place of the machine, and the time of its request in seconds', () => {
    const placement = {
      region: 'lab',
      host: 'pve1',
      vmId: 1_250,
      name: 'worker-1',
      diskStorage: 'local-lvm',
      addresses: ['10.0.0.5/24'],
      hasRegionInMarker: true,
    };
    const machine = aMachine({ requestedAt: 12_999, placement });
    expect(markerOf(machine, CLUSTER)).toEqual({
      cluster: CLUSTER,
      region: 'lab',
      pool: machine.pool,
      machine: machine.id,
      vmId: 1_250,
      createdAtSeconds: 12,
      addresses: ['10.0.0.5/24'],
    });
  });
});
