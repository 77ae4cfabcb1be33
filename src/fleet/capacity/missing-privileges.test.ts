// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Unreachable } from '../../ports/errors.ts';
import { aHost } from '../testing/settings.ts';
import { aTestFleet, REASON, runPasses, type TestFleet } from '../testing/test-fleet.ts';

const HIDDEN_SEEDS = {
  storages: aHost('pve1').storages.filter(({ name }) => name !== 'seeds'),
};

/** The view of hosts as the credentials see them. */
function showHosts({ hypervisor }: TestFleet, seen: Parameters<typeof aHost>[1]): void {
  const view = hypervisor.view.bind(hypervisor);
  hypervisor.view = async (options) => {
    const read = await view(options);
    return { ...read, hosts: read.hosts.map((host) => ({ ...host, ...seen })) };
  };
}

function permissionReads({ hypervisor }: TestFleet): number {
  return hypervisor.calls.filter(({ method }) => method === 'permissions').length;
}

async function refusalOf(testFleet: TestFleet) {
  await testFleet.fleet.scaleTo('workers', 1, REASON);
  await runPasses(testFleet, 3);
  const [refused] = (await testFleet.store.journal.read()).filter(({ kind }) => kind === 'refused');
  return refused;
}

describe('a storage that no host shows', () => {
  it('is reported as hidden when the credentials lack Datastore.Audit', async () => {
    const testFleet = aTestFleet();
    showHosts(testFleet, HIDDEN_SEEDS);
    expect(await refusalOf(testFleet)).toMatchObject({
      reason: 'PERMISSION_MISSING',
      message: expect.stringContaining(
        'host pve1 shows no storage seeds for seeds: the Proxmox credentials lack Datastore.Audit on /storage/seeds',
      ),
    });
  });

  it('is reported as missing when they have it', async () => {
    const testFleet = aTestFleet();
    testFleet.hypervisor.privileges = ['Datastore.Audit'];
    showHosts(testFleet, HIDDEN_SEEDS);
    const { message = '' } = (await refusalOf(testFleet)) ?? {};
    expect(message).toContain('host pve1 has no storage seeds for seeds');
    expect(message).not.toContain('Datastore.Audit');
  });

  it('is asked about once within ten minutes', async () => {
    const testFleet = aTestFleet();
    showHosts(testFleet, HIDDEN_SEEDS);
    await refusalOf(testFleet);
    await runPasses(testFleet, 30);
    expect(permissionReads(testFleet)).toBe(1);
    await testFleet.clock.advance(11 * 60_000);
    await runPasses(testFleet, 2);
    expect(permissionReads(testFleet)).toBe(2);
  });

  it('is reported as missing while the permissions cannot be read', async () => {
    const testFleet = aTestFleet();
    showHosts(testFleet, HIDDEN_SEEDS);
    testFleet.hypervisor.onCall = ({ method }) => {
      if (method === 'permissions') throw new Unreachable('PVE_UNREACHABLE', 'refused');
    };
    expect(await refusalOf(testFleet)).toMatchObject({ reason: 'STORAGE_NOT_FOUND' });
  });
});

describe('a host without CPUs in the view', () => {
  it('is reported with the privilege that the credentials lack', async () => {
    const testFleet = aTestFleet();
    showHosts(testFleet, { cpus: 0, memoryBytes: 0 });
    const { message = '' } = (await refusalOf(testFleet)) ?? {};
    for (const host of ['pve1', 'pve2', 'pve3'])
      expect(message).toContain(`the Proxmox credentials lack Sys.Audit on /nodes/${host}`);
  });
});

it('asks about no privilege while everything is visible', async () => {
  const testFleet = aTestFleet();
  await runPasses(testFleet, 5);
  expect(permissionReads(testFleet)).toBe(0);
});
