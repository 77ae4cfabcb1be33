// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readLines } from './watch-once.ts';

async function* chunks(parts: readonly Uint8Array[]): AsyncIterable<Uint8Array> {
  for (const part of parts) yield await Promise.resolve(part);
}

async function read(parts: readonly Uint8Array[]): Promise<readonly string[]> {
  const lines: string[] = [];
  for await (const line of readLines(chunks(parts))) lines.push(line);
  return lines;
}

describe('readLines', () => {
  it('yields complete lines wherever the chunks are cut, even inside a UTF-8 character', async () => {
    const property = fc.asyncProperty(
      fc.array(
        fc.string({ unit: 'grapheme', minLength: 1 }).filter((line) => !line.includes('\n')),
      ),
      fc.array(fc.nat({ max: 40 })),
      async (lines, cuts) => {
        const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
        const parts: Uint8Array[] = [];
        let from = 0;
        for (const cut of cuts) {
          parts.push(bytes.subarray(from, from + cut));
          from += cut;
        }
        parts.push(bytes.subarray(from));
        expect(await read(parts)).toEqual(lines);
      },
    );
    await fc.assert(property);
  });

  it('drops a truncated last line', async () => {
    expect(await read([Buffer.from('whole\n{"type": "ADD')])).toEqual(['whole']);
  });
});
