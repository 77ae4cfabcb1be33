// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  createScriptedRegion,
  errorResponse,
  okResponse,
  type Route,
} from './scripted-region.fixture.ts';

const HOST = { type: 'node', node: 'pve1', status: 'online', maxcpu: 8, maxmem: 2 ** 35 };
const MIB = 2 ** 20;

type Entry = Readonly<Record<string, unknown>>;

function entry(vmid: number, more: Entry = {}): Entry {
  return { type: 'qemu', vmid, node: 'pve1', status: 'stopped', ...more };
}

/** A region whose VMs can be changed between two views. */
function createEditableRegion(vms: Record<number, Entry>, configs: Record<number, Entry>) {
  const routes: Record<string, Route> = {};
  for (const id of Object.keys(configs)) {
    for (const host of ['pve1', 'pve2']) {
      routes[`GET /nodes/${host}/qemu/${id}/config`] = () => okResponse(configs[Number(id)]);
    }
  }
  const region = createScriptedRegion({
    'GET /cluster/resources': () =>
      okResponse([HOST, { ...HOST, node: 'pve2' }, ...Object.values(vms)]),
    ...routes,
  });
  return {
    region,
    vms,
    configs,
    reads: () => region.requestLines().filter((name) => name.endsWith('/config')).length,
    size: async (vmId: number) => {
      const view = await region.hypervisor.view();
      const vm = view.vms.find((one) => one.vmId === vmId);
      return [vm?.cpus, vm?.memoryBytes];
    },
  };
}

describe('VM sizes', () => {
  it('come from the configuration where /cluster/resources shows less', async () => {
    const { size } = createEditableRegion(
      {
        160: entry(160, { name: 'a', maxcpu: 8, maxmem: 512 * MIB }),
        161: entry(161, { name: 'b', maxcpu: 2, maxmem: 1024 * MIB }),
      },
      {
        160: { digest: 'a', cores: 8, sockets: 2, memory: 'current=2048' },
        161: { digest: 'b', cores: 4, vcpus: 2, memory: '1024', balloon: 256 },
      },
    );
    expect(await size(160)).toEqual([16, 2048 * MIB]);
    expect(await size(161)).toEqual([2, 1024 * MIB]);
  });

  it('are read once, and again only when /cluster/resources shows a change', async () => {
    const known = { name: 'a', maxcpu: 2, maxmem: 1024 * MIB };
    const editable = createEditableRegion(
      { 160: entry(160, known) },
      { 160: { digest: 'a', cores: 2, memory: 1024 } },
    );
    for (let pass = 0; pass < 5; pass += 1)
      expect(await editable.size(160)).toEqual([2, 1024 * MIB]);
    expect(editable.reads()).toBe(1);
    editable.configs[160] = { digest: 'b', cores: 4, memory: 1024 };
    editable.vms[160] = entry(160, { ...known, maxcpu: 4 });
    for (let pass = 0; pass < 5; pass += 1)
      expect(await editable.size(160)).toEqual([4, 1024 * MIB]);
    expect(editable.reads()).toBe(2);
    for (const change of [{ name: 'b' }, { tags: 'x' }, { status: 'running' }, { node: 'pve2' }]) {
      const before = editable.reads();
      editable.vms[160] = entry(160, { ...editable.vms[160], ...change });
      await editable.size(160);
      await editable.size(160);
      expect([change, editable.reads() - before]).toEqual([change, 1]);
    }
  });

  it('are not read again when /cluster/resources shows the VM for the first time', async () => {
    const editable = createEditableRegion(
      { 160: entry(160, { status: 'unknown' }) },
      { 160: { digest: 'a', cores: 2, memory: 1024 } },
    );
    expect(await editable.size(160)).toEqual([2, 1024 * MIB]);
    editable.vms[160] = entry(160, { name: 'a', maxcpu: 2, maxmem: 1024 * MIB });
    expect(await editable.size(160)).toEqual([2, 1024 * MIB]);
    // The host was offline: /cluster/resources has no values, and nothing has changed.
    editable.vms[160] = entry(160, { status: 'unknown' });
    expect(await editable.size(160)).toEqual([2, 1024 * MIB]);
    expect(editable.reads()).toBe(1);
  });

  it('are updated by any read of the configuration', async () => {
    const known = { name: 'a', status: 'running', maxcpu: 2, maxmem: 1024 * MIB };
    const editable = createEditableRegion(
      { 160: entry(160, known) },
      { 160: { digest: 'a', cores: 2, memory: 1024 } },
    );
    await editable.size(160);
    editable.configs[160] = { digest: 'b', cores: 2, memory: 4096 };
    expect(await editable.size(160)).toEqual([2, 1024 * MIB]);
    await editable.region.hypervisor.vmConfig({ vmId: 160, host: 'pve1' });
    expect(await editable.size(160)).toEqual([2, 4096 * MIB]);
    await editable.region.hypervisor.vmConfig({ vmId: 160, host: 'pve1' });
    await editable.size(160);
    expect(editable.reads()).toBe(3);
  });

  it('of a running VM stay those of its start', async () => {
    const known = { name: 'a', status: 'running', maxcpu: 4, maxmem: 4096 * MIB };
    const editable = createEditableRegion(
      { 160: entry(160, known) },
      { 160: { digest: 'a', cores: 1, memory: 512 } },
    );
    expect(await editable.size(160)).toEqual([4, 4096 * MIB]);
    editable.vms[160] = entry(160, { ...known, status: 'stopped' });
    expect(await editable.size(160)).toEqual([1, 512 * MIB]);
  });

  it('are not read while the VM is being created, and rarely when the read is refused', async () => {
    const vms = {
      162: entry(162, { status: 'unknown', lock: 'clone' }),
      163: entry(163, { status: 'unknown' }),
      164: entry(164, { status: 'unknown' }),
      170: { ...entry(170, { status: 'unknown' }), node: 'pve9' },
    };
    const refusal = errorResponse(403, 'Permission check failed (/vms/163, VM.Audit)');
    const region = createScriptedRegion({
      'GET /cluster/resources': () => okResponse([HOST, ...Object.values(vms)]),
      'GET /nodes/pve1/qemu/163/config': refusal,
      'GET /nodes/pve1/qemu/164/config': okResponse({ digest: 'a', memory: 1024 }),
    });
    for (let pass = 0; pass < 3; pass += 1) {
      const view = await region.hypervisor.view();
      expect(view.vms.map((vm) => [vm.vmId, vm.cpus, vm.memoryBytes])).toEqual([
        [162, undefined, undefined],
        [163, undefined, undefined],
        [164, 1, 1024 * MIB],
        [170, undefined, undefined],
      ]);
    }
    const reads = () => region.requestLines().filter((name) => name.endsWith('/config'));
    expect(reads()).toEqual(['GET /nodes/pve1/qemu/163/config', 'GET /nodes/pve1/qemu/164/config']);
    await region.clock.advance(61_000);
    await region.hypervisor.view();
    expect(reads()).toHaveLength(3);
  });

  it('are read again when a new VM has the same id', async () => {
    const editable = createEditableRegion(
      { 160: entry(160, { name: 'a', maxcpu: 2, maxmem: 1024 * MIB }) },
      { 160: { digest: 'a', cores: 2, memory: 1024 } },
    );
    await editable.size(160);
    editable.vms[160] = entry(160, { status: 'unknown', lock: 'create' });
    expect(await editable.size(160)).toEqual([undefined, undefined]);
    editable.configs[160] = { digest: 'b', cores: 6, memory: 512 };
    editable.vms[160] = entry(160, { status: 'unknown' });
    expect(await editable.size(160)).toEqual([6, 512 * MIB]);
  });

  it('are read by the next view when the caller aborts one', async () => {
    const abort = new AbortController();
    let isSlow = true;
    const region = createScriptedRegion({
      'GET /cluster/resources': okResponse([HOST, entry(160, { status: 'unknown' })]),
      'GET /nodes/pve1/qemu/160/config': () => {
        if (!isSlow) return okResponse({ digest: 'a', cores: 2 });
        abort.abort();
        return new Promise(() => undefined);
      },
    });
    const first = region.advanceUntil(region.hypervisor.view({ signal: abort.signal }));
    await expect(first).rejects.toMatchObject({ code: 'CANCELLED' });
    isSlow = false;
    expect((await region.hypervisor.view()).vms[0]?.cpus).toBe(2);
  });

  it('of a whole region are read in one view, unless that takes too long', async () => {
    const ids = Array.from({ length: 200 }, (_, index) => 1_000 + index);
    let delayMs = 0;
    const slow: Route = async () => {
      await region.clock.sleep(delayMs);
      return okResponse({ digest: 'a', cores: 3 });
    };
    const region = createScriptedRegion({
      'GET /cluster/resources': okResponse([
        HOST,
        ...ids.map((id) => entry(id, { maxcpu: 1, maxmem: 512 * MIB })),
      ]),
      ...Object.fromEntries(ids.map((id) => [`GET /nodes/pve1/qemu/${id}/config`, slow])),
    });
    delayMs = 100;
    const first = await region.advanceUntil(region.hypervisor.view());
    const alreadyRead = first.vms.filter((vm) => vm.cpus === 3).length;
    expect(alreadyRead).toBeGreaterThan(20);
    expect(alreadyRead).toBeLessThan(40);
    expect(region.clock.monotonic()).toBeLessThan(3_500);
    delayMs = 0;
    const second = await region.advanceUntil(region.hypervisor.view());
    expect(second.vms.filter((vm) => vm.cpus === 3)).toHaveLength(200);
  });
});
