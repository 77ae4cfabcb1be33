// SPDX-License-Identifier: Apache-2.0
// Checksums of images whose config gives the URL of the publisher's list (SHA256SUMS) instead of a checksum.
import type { Config, ImageConfig } from '../config/index.ts';
import { InvalidConfig, PvescalerError, Unreachable } from '../ports/errors.ts';
import type { SetupContext } from './context.ts';

type Checksum = NonNullable<ImageConfig['checksum']>;

/** How long a checksum of an earlier process is used before the list is read again. */
const KNOWN_MS = 10 * 60_000;

/**
 * Reads the list when an image is needed, and not before: deleting machines needs none. The last known checksum is kept
 * in a file beside the database, and used while the list cannot be read.
 */
export function imageChecksums(
  { adapters, clock, files }: SetupContext,
  { state }: Config,
): (image: ImageConfig) => Promise<Checksum> {
  const path = `${state.path}.image-checksums.json`;
  const current = new Map<string, { readonly checksum: Checksum; readonly until: number }>();
  const readList = async (image: ImageConfig, key: string): Promise<Checksum> => {
    const list = await adapters.readUrl(image.checksumUrl ?? '').catch((error: unknown) => {
      throw unreadable(image, error);
    });
    const checksum = findChecksum(list, image);
    current.set(key, { checksum, until: Number.POSITIVE_INFINITY });
    const known = { ...parseKnown(await files.read(path)), [key]: format(checksum) };
    await files.write(path, `${JSON.stringify(known, null, 2)}\n`, { overwrite: true });
    return checksum;
  };
  return async (image) => {
    const key = `${image.checksumUrl} ${image.url}`;
    const held = current.get(key);
    if (held !== undefined && clock.monotonic() < held.until) return held.checksum;
    try {
      return await readList(image, key);
    } catch (error) {
      const known = parse(parseKnown(await files.read(path))[key]);
      if (!(error instanceof Unreachable) || known === undefined) throw error;
      current.set(key, { checksum: known, until: clock.monotonic() + KNOWN_MS });
      return known;
    }
  };
}

function unreadable({ name, checksumUrl }: ImageConfig, error: unknown): unknown {
  if (!(error instanceof PvescalerError) || error.code === 'CANCELLED') return error;
  return new Unreachable(
    'IMAGE_CHECKSUM_UNREADABLE',
    `image ${name}: cannot read its checksum from ${checksumUrl}: ${error.message}`,
    { cause: error },
  );
}

/** Empty when the file is missing or damaged: it only bridges the time until the list can be read. */
function parseKnown(text: string | undefined): Readonly<Record<string, unknown>> {
  try {
    const parsed: unknown = JSON.parse(text ?? '{}');
    return typeof parsed === 'object' && parsed !== null ? { ...parsed } : {};
  } catch {
    return {};
  }
}

function format({ algorithm, hex }: Checksum): string {
  return `${algorithm}:${hex}`;
}

function parse(text: unknown): Checksum | undefined {
  const [, hex] = /^sha(?:256|512):([0-9a-f]+)$/.exec(String(text)) ?? [];
  return hex === undefined ? undefined : parseChecksum(hex);
}

/** `<hex>  name`, `<hex> *name`, or `SHA256 (name) = <hex>`. */
export function findChecksum(list: string, { name, url, checksumUrl }: ImageConfig): Checksum {
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
