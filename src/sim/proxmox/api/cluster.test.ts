// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { SimHarness, testCluster } from '../testing/sim-harness.ts';

type Row = Record<string, unknown>;

async function resource(harness: SimHarness, id: string): Promise<Row | undefined> {
  const { data } = await harness.call('GET', '/cluster/resources');
  return data.find((row: Row) => row['id'] === id);
}

describe('/cluster/resources', () => {
  it('lists a new VM at once, but its name and status only after the next broadcast', async () => {
    const harness = new SimHarness();
    await harness.clock.advance(1);
    await harness.createVm(100, { name: 'late', tags: 'x', memory: 1024 });
    expect(await resource(harness, 'qemu/100')).toEqual({
      id: 'qemu/100',
      type: 'qemu',
      vmid: 100,
      node: 'pve1',
      tags: 'x',
      status: 'unknown',
    });
    await harness.clock.advance(10_000);
    expect(await resource(harness, 'qemu/100')).toMatchObject({
      name: 'late',
      status: 'stopped',
      maxmem: 2 ** 30,
      template: 0,
    });
    await harness.waitForTask(await harness.call('POST', '/nodes/pve1/qemu/100/status/start'));
    expect(await resource(harness, 'qemu/100')).toMatchObject({ status: 'stopped' });
    expect((await harness.call('GET', '/nodes/pve1/qemu/100/status/current')).data.status).toBe(
      'running',
    );
    await harness.clock.advance(10_000);
    expect(await resource(harness, 'qemu/100')).toMatchObject({ status: 'running' });
  });

  it('keeps the last status of an offline host for five minutes', async () => {
    const harness = new SimHarness({ cluster: testCluster(3) });
    const vms = [{ id: 100, host: 'pve2', running: true, config: { name: 'x' } }];
    const other = new SimHarness({ cluster: { ...testCluster(3), vms } });
    await other.clock.advance(20_000);
    other.sim.externalChanges.hostDown('pve2');
    expect(await resource(other, 'node/pve2')).toMatchObject({ status: 'online' });
    await other.clock.advance(10_000);
    expect(await resource(other, 'node/pve2')).toMatchObject({ status: 'offline', maxcpu: 16 });
    expect(await resource(other, 'qemu/100')).toMatchObject({ status: 'running' });
    await other.clock.advance(300_000);
    expect(await resource(other, 'qemu/100')).toMatchObject({ status: 'unknown' });
    expect((await other.call('GET', '/nodes/pve2/qemu')).status).toBe(595);
    other.sim.externalChanges.hostUp('pve2');
    expect((await other.call('GET', '/nodes/pve2/qemu')).status).toBe(200);
    expect(await resource(harness, 'node/pve2')).toMatchObject({ status: 'online' });
  });

  it('filters by type, and reports network resources as sdn in 8.4', async () => {
    const harness = new SimHarness({
      cluster: { ...testCluster(2), containers: [{ id: 105, host: 'pve1' }], pools: [{ id: 'p' }] },
    });
    const types = async (params = {}) => [
      ...new Set(
        (await harness.call('GET', '/cluster/resources', params)).data.map(
          (row: Row) => row['type'],
        ),
      ),
    ];
    expect(await types({ type: 'vm' })).toEqual(['lxc']);
    expect(await types({ type: 'node' })).toEqual(['node']);
    expect(await types({ type: 'storage' })).toEqual(['storage']);
    expect(await types()).toEqual(['pool', 'lxc', 'node', 'storage', 'network']);
    expect((await harness.call('GET', '/cluster/resources', { type: 'qemu' })).errors).toEqual({
      type: "value 'qemu' does not have a value in the enumeration 'vm, storage, node, sdn'",
    });
    const old = new SimHarness({ version: '8.4' });
    expect((await old.call('GET', '/cluster/resources', { type: 'sdn' })).data[0].type).toBe('sdn');
  });
});

describe('cluster endpoints', () => {
  it('/cluster/status has a cluster row only for several hosts', async () => {
    const one = (await new SimHarness().call('GET', '/cluster/status')).data;
    expect(one.map((row: Row) => row['type'])).toEqual(['node']);
    const three = new SimHarness({ cluster: testCluster(3) });
    three.sim.externalChanges.hostDown('pve2');
    three.sim.externalChanges.hostDown('pve3');
    await three.clock.advance(10_000);
    expect((await three.call('GET', '/cluster/status')).data[0]).toMatchObject({
      type: 'cluster',
      quorate: 0,
      nodes: 3,
    });
  });

  it('/cluster/nextid returns a string, reserves nothing and respects its range', async () => {
    const cluster = {
      ...testCluster(),
      datacenter: { nextId: { lower: 500, upper: 502 } },
      containers: [{ id: 500, host: 'pve1' }],
    };
    const harness = new SimHarness({ cluster });
    expect((await harness.call('GET', '/cluster/nextid')).data).toBe('501');
    expect((await harness.call('GET', '/cluster/nextid')).data).toBe('501');
    expect((await harness.call('GET', '/cluster/nextid', { vmid: 900 })).data).toBe('900');
    expect((await harness.call('GET', '/cluster/nextid', { vmid: 500 })).errors).toEqual({
      vmid: 'VM 500 already exists',
    });
    await harness.createVm(501);
    expect((await harness.call('GET', '/cluster/nextid')).reason).toBe(
      'unable to get any free VMID in range [500, 502]',
    );
  });

  it('/cluster/options can be read and changed', async () => {
    const harness = new SimHarness();
    expect(
      (
        await harness.call('PUT', '/cluster/options', {
          'tag-style': 'case-sensitive=1,ordering=config',
        })
      ).status,
    ).toBe(200);
    await harness.createVm(100, { tags: 'Zeta;alpha' });
    expect((await harness.call('GET', '/nodes/pve1/qemu/100/config')).data.tags).toBe('Zeta;alpha');
    expect((await harness.call('GET', '/cluster/options')).data['tag-style']).toEqual({
      'case-sensitive': '1',
      ordering: 'config',
    });
    expect(
      (await harness.call('PUT', '/cluster/options', { 'tag-style': 'shape=round' })).status,
    ).toBe(400);
  });

  it('/pools refuses to delete a pool with members', async () => {
    const harness = new SimHarness();
    await harness.call('POST', '/pools', { poolid: 'k8s', comment: 'ours' });
    expect((await harness.call('POST', '/pools', { poolid: 'k8s' })).reason).toBe(
      "create pool failed: pool 'k8s' already exists",
    );
    await harness.createVm(100, { pool: 'k8s' });
    expect((await harness.call('GET', '/pools/k8s')).data).toMatchObject({
      poolid: 'k8s',
      comment: 'ours',
      members: [{ vmid: 100 }],
    });
    expect((await harness.call('GET', '/pools', { poolid: 'k8s' })).data[0]).toMatchObject({
      poolid: 'k8s',
    });
    expect((await harness.call('DELETE', '/pools/k8s')).reason).toBe(
      "delete pool failed: pool 'k8s' is not empty (contains VM 100)",
    );
    await harness.call('PUT', '/pools', { poolid: 'k8s', vms: '100', delete: 1 });
    expect((await harness.call('DELETE', '/pools', { poolid: 'k8s' })).status).toBe(200);
    expect((await harness.call('GET', '/pools/k8s')).reason).toBe("pool 'k8s' does not exist");
  });

  it('/nodes returns status, network and version of a host', async () => {
    const harness = new SimHarness();
    expect((await harness.call('GET', '/nodes')).data[0]).toMatchObject({
      node: 'pve1',
      status: 'online',
      maxcpu: 16,
    });
    expect((await harness.call('GET', '/nodes/pve1/status')).data).toMatchObject({
      cpuinfo: { cpus: 16 },
    });
    expect(
      (await harness.call('GET', '/nodes/pve1/network', { type: 'bridge' })).data[0],
    ).toMatchObject({ iface: 'vmbr0', type: 'bridge' });
    expect((await harness.call('GET', '/version')).data.release).toBe('9.2');
    expect((await new SimHarness({ version: '8.4' }).call('GET', '/version')).data.release).toBe(
      '8.4',
    );
    expect(
      (await harness.call('POST', '/cluster/ha/groups', { group: 'gg', nodes: 'pve1' })).reason,
    ).toBe('cannot create group: ha groups have been migrated to rules');
    const response = await harness.call('POST', '/nodes/pve1/startall');
    expect([response.status, response.reason]).toEqual([
      501,
      'POST /nodes/{node}/startall is not simulated',
    ]);
  });
});
