// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Config, ImageConfig } from '../config/index.ts';
import { InvalidConfig, Unreachable } from '../ports/errors.ts';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import type { SetupContext } from './context.ts';
import { imageChecksums } from './image-checksums.ts';

const MINUTE_MS = 60_000;
const HEX = 'ab'.repeat(32);
const IMAGE = {
  name: 'noble',
  url: 'https://images.example/current/noble.img',
  checksumUrl: 'https://images.example/current/SHA256SUMS',
} as ImageConfig;

/** A publisher whose list changes and fails, and processes that share one folder. */
function aPublisher() {
  const clock = new VirtualClock();
  const texts = new Map<string, string>();
  const publisher = { list: `${HEX} *noble.img\n`, isUp: true, reads: 0 };
  const files: SetupContext['files'] = {
    read: (path) => Promise.resolve(texts.get(path)),
    write: (path, text) => {
      texts.set(path, text);
      return Promise.resolve('written');
    },
  };
  const readUrl = (url: string) => {
    publisher.reads += 1;
    return publisher.isUp
      ? Promise.resolve(publisher.list)
      : Promise.reject(new Unreachable('PVE_UNREACHABLE', `${url} cannot be reached`));
  };
  const aProcess = () =>
    imageChecksums(
      { clock, files, adapters: { readUrl } } as unknown as SetupContext,
      {
        state: { path: '/state.db' },
      } as Config,
    );
  return { clock, publisher, texts, aProcess };
}

describe('imageChecksums', () => {
  it('reads the list only when a checksum is needed, and once per process', async () => {
    const { publisher, aProcess } = aPublisher();
    const checksums = aProcess();
    expect(publisher.reads).toBe(0);
    for (const _ of [1, 2]) {
      expect(await checksums(IMAGE)).toEqual({ algorithm: 'sha256', hex: HEX });
    }
    expect(publisher.reads).toBe(1);
  });

  it('keeps the last known checksum for later processes, and reads the list again after ten minutes', async () => {
    const { clock, publisher, aProcess } = aPublisher();
    await aProcess()(IMAGE);
    publisher.isUp = false;
    const later = aProcess();
    expect(await later(IMAGE)).toEqual({ algorithm: 'sha256', hex: HEX });
    publisher.isUp = true;
    publisher.list = `${'cd'.repeat(32)}  noble.img\n`;
    expect(await later(IMAGE)).toMatchObject({ hex: HEX });
    await clock.advance(10 * MINUTE_MS);
    expect(await later(IMAGE)).toMatchObject({ hex: 'cd'.repeat(32) });
  });

  it('does not use the checksum of another file or list', async () => {
    const { publisher, aProcess } = aPublisher();
    await aProcess()(IMAGE);
    publisher.isUp = false;
    const other = { ...IMAGE, url: 'https://images.example/current/jammy.img' };
    await expect(aProcess()(other)).rejects.toBeInstanceOf(Unreachable);
  });

  it('rejects with an error about the list, not about Proxmox, when there is no known checksum', async () => {
    const { publisher, texts, aProcess } = aPublisher();
    publisher.isUp = false;
    texts.set('/state.db.image-checksums.json', 'damaged');
    await expect(aProcess()(IMAGE)).rejects.toMatchObject({
      code: 'IMAGE_CHECKSUM_UNREADABLE',
      retry: 'backoff',
      message: expect.stringContaining(
        'image noble: cannot read its checksum from https://images.example/current/SHA256SUMS',
      ) as unknown,
      hint: expect.stringContaining('checksumUrl') as unknown,
    });
  });

  it('rejects a list without the file, also when a checksum is known', async () => {
    const { publisher, aProcess } = aPublisher();
    await aProcess()(IMAGE);
    publisher.list = `${HEX} *other.img\n`;
    await expect(aProcess()(IMAGE)).rejects.toBeInstanceOf(InvalidConfig);
  });
});
