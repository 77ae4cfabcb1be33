// SPDX-License-Identifier: Apache-2.0
// The checksums of images whose config names the publisher's list of them (SHA256SUMS) instead of one.
import type { Config, ImageConfig } from '../config/index.ts';
import { InvalidConfig } from '../ports/errors.ts';
import type { CliContext } from './context.ts';

type Checksum = NonNullable<ImageConfig['checksum']>;

export async function imageChecksums(
  context: CliContext,
  config: Config,
): Promise<Readonly<Record<string, Checksum>>> {
  const found: Record<string, Checksum> = {};
  for (const { from } of config.pools) {
    const image = from.kind === 'image' ? config.images[from.image] : undefined;
    if (image?.checksumUrl === undefined || image.checksum !== undefined) continue;
    if (found[image.name] !== undefined) continue;
    const list = await context.adapters.readUrl(image.checksumUrl);
    found[image.name] = checksumIn(list, image);
  }
  return found;
}

/** `<hex>  name`, `<hex> *name`, or `SHA256 (name) = <hex>`. */
export function checksumIn(list: string, { name, url }: ImageConfig): Checksum {
  const file = new URL(url).pathname.split('/').at(-1) ?? '';
  for (const line of list.split(/\r?\n/)) {
    const [, hex = '', named] = /^([0-9a-fA-F]{64,128})\s+\*?(\S+)$/.exec(line.trim()) ?? [];
    if (named === file || named === `./${file}`) return checksumOf(hex);
    const [, bsdName, bsdHex = ''] = /^SHA\d+ \((.+)\) = ([0-9a-fA-F]+)$/.exec(line.trim()) ?? [];
    if (bsdName === file) return checksumOf(bsdHex);
  }
  throw new InvalidConfig('CONFIG_INVALID', `the checksums of image ${name} do not name ${file}`);
}

function checksumOf(hex: string): Checksum {
  return { algorithm: hex.length === 128 ? 'sha512' : 'sha256', hex: hex.toLowerCase() };
}
