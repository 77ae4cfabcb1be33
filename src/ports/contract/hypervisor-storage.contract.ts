// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { HypervisorFixture } from './hypervisor-fixture.ts';

export function storageContract(fixture: () => HypervisorFixture): void {
  describe('volumes', () => {
    function isoOn({ underTest }: HypervisorFixture, bytes: Uint8Array) {
      return {
        host: underTest.hosts[0],
        storage: underTest.storages.isos,
        name: 'seed-1.iso',
        bytes,
      };
    }

    function isoId({ hypervisor, underTest }: HypervisorFixture): string {
      const { isos: storage } = underTest.storages;
      return hypervisor.volumeId({ storage, content: 'iso', name: 'seed-1.iso' });
    }

    it('uploads, overwrites, lists and deletes an ISO', async () => {
      const { hypervisor, underTest, followToEnd } = fixture();
      const [host] = underTest.hosts;
      const { isos } = underTest.storages;
      for (const size of [2_048, 4_096]) {
        const file = isoOn(fixture(), new Uint8Array(size).fill(7));
        expect(await followToEnd(hypervisor.uploadIso(file))).toMatchObject({ succeeded: true });
        const volumes = await underTest.advanceUntil(hypervisor.volumes(host, isos, 'iso'));
        const found = volumes.filter((volume) => volume.id === isoId(fixture()));
        expect(found).toEqual([
          expect.objectContaining({ name: 'seed-1.iso', bytes: size, content: 'iso' }),
        ]);
      }
      for (let pass = 0; pass < 2; pass += 1) {
        await underTest.advanceUntil(hypervisor.deleteVolume(host, isoId(fixture())));
      }
      const left = await underTest.advanceUntil(hypervisor.volumes(host, isos, 'iso'));
      expect(left.map((volume) => volume.id)).not.toContain(isoId(fixture()));
    });

    it('reports the free space of the storages for disks only', async () => {
      const { hypervisor, underTest } = fixture();
      const [host] = underTest.hosts;
      const { disks, isos } = underTest.storages;
      const space = await underTest.advanceUntil(hypervisor.storageSpace(host));
      expect(space.get(disks)).toBeGreaterThan(0);
      const view = await underTest.advanceUntil(hypervisor.view());
      const known = view.hosts.find(({ name }) => name === host)?.storages ?? [];
      const ofIsos = known.find(({ name }) => name === isos);
      expect(space.has(isos)).toBe(ofIsos?.content.includes('images'));
    });

    it('attaches and ejects a seed, and keeps its ISO when the VM is destroyed', async () => {
      const { hypervisor, underTest, createVm, readConfig, followToEnd } = fixture();
      const [host] = underTest.hosts;
      const { isos } = underTest.storages;
      await followToEnd(hypervisor.uploadIso(isoOn(fixture(), new Uint8Array(2_048))));
      const vm = await createVm();
      const id = isoId(fixture());
      const { digest } = await readConfig(vm);
      await underTest.advanceUntil(hypervisor.attachSeed(vm, id, { digest }));
      const attached = await readConfig(vm);
      expect(attached.seedVolume).toBe(id);
      await underTest.advanceUntil(hypervisor.ejectSeed(vm, { digest: attached.digest }));
      const ejected = await readConfig(vm);
      expect(ejected.seedVolume).toBeUndefined();
      await underTest.advanceUntil(hypervisor.attachSeed(vm, id, { digest: ejected.digest }));
      await followToEnd(hypervisor.destroyVm(vm));
      const left = await underTest.advanceUntil(hypervisor.volumes(host, isos, 'iso'));
      expect(left.map((volume) => volume.id)).toContain(isoId(fixture()));
    });

    it('downloads an image once, and imports it as a disk', async () => {
      const { hypervisor, underTest, createVm, readConfig, followToEnd } = fixture();
      const [host] = underTest.hosts;
      const { images, disks } = underTest.storages;
      const { url, sha256 } = underTest.image;
      const order = {
        host,
        storage: images,
        url,
        fileName: 'image-0123.qcow2',
        checksum: { algorithm: 'sha256', hex: sha256 },
        verifyCertificates: true,
      } as const;
      for (let pass = 0; pass < 2; pass += 1) {
        expect(await followToEnd(hypervisor.downloadImage(order))).toMatchObject({
          succeeded: true,
        });
      }
      const name = order.fileName;
      const id = hypervisor.volumeId({ storage: images, content: 'import', name });
      const volumes = await underTest.advanceUntil(hypervisor.volumes(host, images, 'import'));
      expect(volumes.map((volume) => volume.id)).toContain(id);
      const vm = await createVm({ disk: { storage: disks, bytes: 0, importFrom: id } });
      expect((await readConfig(vm)).bootDisk).toMatchObject({ storage: disks });
    });

    it('fails with STORAGE_NOT_FOUND for an unknown storage', async () => {
      const { hypervisor, underTest } = fixture();
      const work = hypervisor.volumes(underTest.hosts[0], 'nosuch', 'iso');
      await expect(underTest.advanceUntil(work)).rejects.toMatchObject({
        class: 'NotFound',
        code: 'STORAGE_NOT_FOUND',
      });
    });
  });
}
