// SPDX-License-Identifier: Apache-2.0
// Reading foreign values without trusting them: Proxmox sends numbers as strings, booleans as 0 and 1, and
// leaves out what it does not know.

export type Foreign = Readonly<Record<string, unknown>>;

function isRecord(value: unknown): value is Foreign {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function recordOf(value: unknown): Foreign {
  return isRecord(value) ? value : {};
}

export function recordsOf(value: unknown): readonly Foreign[] {
  return Array.isArray(value) ? value.filter((item: unknown) => isRecord(item)) : [];
}

/** Numbers too: a name made of digits may arrive as one. */
export function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  return typeof value === 'number' ? String(value) : undefined;
}

export function numberOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  if (typeof value !== 'string' || value.trim() === '') return undefined;
  const number = Number(value);
  return Number.isNaN(number) ? undefined : number;
}

export function flagOf(value: unknown): boolean {
  return value === true || value === 1 || value === '1';
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
