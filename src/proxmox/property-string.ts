// SPDX-License-Identifier: Apache-2.0
// Property strings: several properties in one option, `virtio,bridge=vmbr0,tag=12`. One part may omit its key (the model of
// a network card, the volume of a disk); the caller passes this default key.

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

/** `head` comes first, without a key. Undefined values are omitted; booleans become 1 and 0. */
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
