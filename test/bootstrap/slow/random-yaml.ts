// SPDX-License-Identifier: Apache-2.0
// Formats random values with our YAML and reads them with PyYAML, all in one call: the values must be equal.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { formatYaml } from '../../../src/bootstrap/testing/a-seed.ts';
import type { Tally } from './tally.ts';
import { PYTHON, run } from './tools.ts';

const readMany = join(import.meta.dirname, 'read_many.py');
const COUNT = 3000;

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({
    unit: fc.constantFrom(
      ...Array.from('a \n\t\r#:-"\'\\%|>&*!?{}[],=~`@0.\u0085\u00a0\u2028\ufeff'),
    ),
  }),
  fc.constantFrom(
    'yes',
    'NO',
    'on',
    '0644',
    '0b1',
    '1_0',
    '1:30',
    '~',
    '<<',
    '=',
    '2026-01-01',
    '.inf',
  ),
);
const { node } = fc.letrec((tie) => ({
  node: fc.oneof(
    { depthSize: 'small' },
    text,
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('node'), { maxLength: 4 }),
    fc.dictionary(fc.oneof(text, fc.stringMatching(/^[a-z-]{1,9}$/)), tie('node'), {
      maxKeys: 4,
      noNullPrototype: true,
    }),
  ),
}));

export function checkRandomYaml(folder: string, tally: Tally, seed: number): number {
  const values: readonly unknown[] = fc.sample(
    fc.record({ value: node }, { noNullPrototype: true }),
    {
      seed,
      numRuns: COUNT,
    },
  );
  const path = join(folder, 'many.json');
  writeFileSync(path, JSON.stringify(values.map(formatYaml)));
  const { status, out, text: output } = run(PYTHON, [readMany, path]);
  const read: readonly unknown[] = status === 0 ? JSON.parse(out.toString()) : [];
  if (status !== 0) tally.check('PyYAML ran', false, () => output);
  for (const [index, value] of values.entries()) {
    tally.check(`random YAML ${index} of seed ${seed}`, isDeepStrictEqual(read[index], value), () =>
      JSON.stringify({ value, text: formatYaml(value), read: read[index] }),
    );
  }
  return values.length;
}
