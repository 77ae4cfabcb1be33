// SPDX-License-Identifier: Apache-2.0
// `virtio,bridge=vmbr0,tag=12`: how Proxmox writes a small record into one option. One part may come without
// its key (the model of a network card, the volume of a disk); each caller knows which key that stands for.

export type Properties = ReadonlyMap<string, string>;

export function parseProperties(text: string, defaultKey: string): Properties {
  const properties = new Map<string, string>();
  for (const part of text.split(',')) {
    const equals = part.indexOf('=');
    if (equals > 0) properties.set(part.slice(0, equals).trim(), part.slice(equals + 1));
    else if (part.trim() !== '') properties.set(defaultKey, part.trim());
  }
  return properties;
}

/** `head` comes first and bare; undefined values are left out; booleans become 1 and 0. */
export function formatProperties(
  head: string | undefined,
  properties: Readonly<Record<string, string | number | boolean | undefined>>,
): string {
  const parts = Object.entries(properties).flatMap(([key, value]) => {
    if (value === undefined) return [];
    return [`${key}=${typeof value === 'boolean' ? Number(value) : value}`];
  });
  return (head === undefined ? parts : [head, ...parts]).join(',');
}

const UNIT_BYTES: Readonly<Record<string, number>> = {
  '': 1,
  K: 2 ** 10,
  M: 2 ** 20,
  G: 2 ** 30,
  T: 2 ** 40,
};

/** `32G`, `2252M`, `1.5T`, as the `size` of a disk is written. */
export function parseDiskSize(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)([KMGT]?)$/.exec(text);
  if (match === null) return undefined;
  return Math.round(Number(match[1]) * (UNIT_BYTES[match[2] ?? ''] ?? 1));
}

/** Never smaller than asked; in the largest unit that says it exactly. */
export function formatDiskSize(bytes: number): string {
  const mebibytes = Math.ceil(bytes / 2 ** 20);
  return mebibytes % 1024 === 0 ? `${mebibytes / 1024}G` : `${mebibytes}M`;
}
