// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { formatYaml } from './format-yaml.ts';

const key = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }),
  fc.constantFrom('y', '=', '<<', 'a b', '#'),
);
const leaf = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({
    unit: fc.constantFrom('a', ' ', '\n', '\t', '#', ':', '-', '"', "'", '\\', '%', '|'),
  }),
  fc.constantFrom(
    'yes',
    'NO',
    'on',
    '0644',
    '1:30',
    '~',
    'null',
    '=',
    '<<',
    '2026-01-01',
    '.inf',
    'e0',
    'e-0',
    '\u2028',
  ),
  fc.integer(),
  fc.boolean(),
  fc.constant(null),
);
const { document } = fc.letrec((tie) => ({
  document: fc.dictionary(key, tie('node'), { noNullPrototype: true }),
  node: fc.oneof(
    { depthSize: 'small' },
    leaf,
    tie('document'),
    fc.array(tie('node'), { maxLength: 4 }),
  ),
}));

describe('formatYaml', () => {
  it.each(['1.1', '1.2'] as const)('parses back to the same value in YAML %s', (version) => {
    fc.assert(
      fc.property(document, (value) => {
        const text = formatYaml(value);
        expect(parse(text, { version, merge: false })).toEqual(value);
        // Characters that PyYAML rejects or treats as line breaks.
        expect(text).not.toMatch(/[\u007f-\u0084\u0086-\u009f\u0085\u2028\u2029\ufeff]/);
      }),
      { numRuns: 500 },
    );
  });

  it('writes readable YAML where possible', () => {
    expect(
      formatYaml({
        name: 'worker-1',
        path: '/etc/a.b',
        on: 'yes',
        mode: '0644',
        script: '#!/bin/sh\na: b\n',
      }),
    ).toBe(`name: worker-1
path: /etc/a.b
"on": "yes"
mode: "0644"
script: |
  #!/bin/sh
  a: b
`);
  });

  it('writes a value that occurs twice without an alias', () => {
    const shared = ['a', 'b'];
    expect(formatYaml({ one: shared, two: shared })).toBe(
      'one:\n  - a\n  - b\ntwo:\n  - a\n  - b\n',
    );
  });

  it('never folds a long line', () => {
    const long = 'word '.repeat(100).trim();
    expect(formatYaml({ long })).toBe(`long: "${long}"\n`);
  });
});
