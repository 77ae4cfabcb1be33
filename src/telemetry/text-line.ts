// SPDX-License-Identifier: Apache-2.0

/** A line of the JSON log for people: time, level, words, then the facts. */
export function textLine(json: string): string {
  const parsed: unknown = JSON.parse(json);
  const all = new Map(Object.entries(parsed ?? {}));
  const take = (name: string) => {
    const value: unknown = all.get(name);
    all.delete(name);
    return typeof value === 'string' ? value : '';
  };
  const head = [take('time'), take('level').toUpperCase().padEnd(5), take('message')];
  const rest = [...all].map(([name, value]) => `${name}=${valueText(value)}`);
  return `${[...head, ...rest].join(' ')}\n`;
}

function valueText(value: unknown): string {
  if (typeof value === 'string' && /^[^\s"=]+$/.test(value)) return value;
  return JSON.stringify(value);
}
