// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Bench } from './hypervisor-bench.ts';

export function storageContract(bench: () => Bench): void {
  describe('files', () => {
    function isoOn({ it: under }: Bench, bytes: Uint8Array) {
      return { host: under.hosts[0], storage: under.storages.isos, name: 'seed-1.iso', bytes };
    }

    function isoId({ hypervisor, it: under }: Bench): string {
      const { isos: storage } = under.storages;
      return hypervisor.volumeId({ storage, content: 'iso', name: 'seed-1.iso' });
    }

    it('uploads an ISO, over an old one too, lists and deletes it', async () => {
      const { hypervisor, it: under, end } = bench();
      const [host] = under.hosts;
      const { isos } = under.storages;
      for (const size of [2_048, 4_096]) {
        const file = isoOn(bench(), new Uint8Array(size).fill(7));
        expect(await end(hypervisor.uploadIso(file))).toMatchObject({ succeeded: true });
        const volumes = await under.settled(hypervisor.volumes(host, isos, 'iso'));
        const found = volumes.filter((volume) => volume.id === isoId(bench()));
        expect(found).toEqual([
          expect.objectContaining({ name: 'seed-1.iso', bytes: size, content: 'iso' }),
        ]);
      }
      for (let turn = 0; turn < 2; turn += 1) {
        await under.settled(hypervisor.deleteVolume(host, isoId(bench())));
      }
      const left = await under.settled(hypervisor.volumes(host, isos, 'iso'));
      expect(left.map((volume) => volume.id)).not.toContain(isoId(bench()));
    });

    it('attaches and ejects a seed, and leaves it alone when its VM is destroyed', async () => {
      const { hypervisor, it: under, created, config, end } = bench();
      const [host] = under.hosts;
      const { isos } = under.storages;
      await end(hypervisor.uploadIso(isoOn(bench(), new Uint8Array(2_048))));
      const vm = await created();
      const id = isoId(bench());
      const { digest } = await config(vm);
      await under.settled(hypervisor.attachSeed(vm, id, { digest }));
      expect((await config(vm)).seedVolume).toBe(id);
      await under.settled(hypervisor.ejectSeed(vm));
      expect((await config(vm)).seedVolume).toBeUndefined();
      await under.settled(hypervisor.attachSeed(vm, id));
      await end(hypervisor.destroyVm(vm));
      const left = await under.settled(hypervisor.volumes(host, isos, 'iso'));
      expect(left.map((volume) => volume.id)).toContain(isoId(bench()));
    });

    it('downloads an image once, and makes disks of it', async () => {
      const { hypervisor, it: under, created, config, end } = bench();
      const [host] = under.hosts;
      const { images, disks } = under.storages;
      const { url, sha256 } = under.image;
      const order = {
        host,
        storage: images,
        url,
        fileName: 'image-0123.qcow2',
        checksum: { algorithm: 'sha256', hex: sha256 },
        verifyCertificates: true,
      } as const;
      for (let turn = 0; turn < 2; turn += 1) {
        expect(await end(hypervisor.downloadImage(order))).toMatchObject({ succeeded: true });
      }
      const name = order.fileName;
      const id = hypervisor.volumeId({ storage: images, content: 'import', name });
      const volumes = await under.settled(hypervisor.volumes(host, images, 'import'));
      expect(volumes.map((volume) => volume.id)).toContain(id);
      const vm = await created({ disk: { storage: disks, bytes: 0, importFrom: id } });
      expect((await config(vm)).bootDisk).toMatchObject({ storage: disks });
    });

    it('says when there is no such storage', async () => {
      const { hypervisor, it: under } = bench();
      const work = hypervisor.volumes(under.hosts[0], 'nosuch', 'iso');
      await expect(under.settled(work)).rejects.toMatchObject({
        class: 'NotFound',
        code: 'STORAGE_NOT_FOUND',
      });
    });
  });
}
