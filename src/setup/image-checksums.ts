// SPDX-License-Identifier: Apache-2.0
// Checksums of images whose config gives the URL of the publisher's list (SHA256SUMS) instead of a checksum.
import type { Config, ImageConfig } from '../config/index.ts';
import { InvalidConfig } from '../ports/errors.ts';
import type { SetupContext } from './context.ts';

type Checksum = NonNullable<ImageConfig['checksum']>;

export async function readImageChecksums(
  context: SetupContext,
  config: Config,
): Promise<Readonly<Record<string, Checksum>>> {
  const found: Record<string, Checksum> = {};
  for (const { from } of config.pools) {
    const image = from.kind === 'image' ? config.images[from.image] : undefined;
    if (image?.checksumUrl === undefined || image.checksum !== undefined) continue;
    if (found[image.name] !== undefined) continue;
    const list = await context.adapters.readUrl(image.checksumUrl);
    found[image.name] = findChecksum(list, image);
  }
  return found;
}

/** `<hex>  name`, `<hex> *name`, or `SHA256 (name) = <hex>`. */
function findChecksum(list: string, { name, url, checksumUrl }: ImageConfig): Checksum {
  const file = new URL(url).pathname.split('/').at(-1) ?? '';
  for (const line of list.split(/\r?\n/)) {
    const [, hex = '', gnuName] = /^([0-9a-fA-F]{64,128})\s+\*?(\S+)$/.exec(line.trim()) ?? [];
    if (gnuName === file || gnuName === `./${file}`) return parseChecksum(hex);
    const [, bsdName, bsdHex = ''] = /^SHA\d+ \((.+)\) = ([0-9a-fA-F]+)$/.exec(line.trim()) ?? [];
    if (bsdName === file) return parseChecksum(bsdHex);
  }
  throw new InvalidConfig(
    'CONFIG_INVALID',
    `image ${name}: ${file} is not in the list at ${checksumUrl}`,
    {
      hint: 'Check url and checksumUrl of the image, or set its checksum.',
    },
  );
}

function parseChecksum(hex: string): Checksum {
  return { algorithm: hex.length === 128 ? 'sha512' : 'sha256', hex: hex.toLowerCase() };
}
