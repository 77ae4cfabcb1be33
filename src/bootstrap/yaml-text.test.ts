// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { yamlText } from './yaml-text.ts';

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

describe('yamlText', () => {
  it.each(['1.1', '1.2'] as const)('reads back as what it was, in YAML %s', (version) => {
    fc.assert(
      fc.property(document, (value) => {
        const text = yamlText(value);
        expect(parse(text, { version, merge: false })).toEqual(value);
        // What PyYAML refuses, or takes for a line break, wherever it stands.
        expect(text).not.toMatch(/[\u007f-\u0084\u0086-\u009f\u0085\u2028\u2029\ufeff]/);
      }),
      { numRuns: 500 },
    );
  });

  it('is easy on the eye where it may be', () => {
    expect(
      yamlText({
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

  it('says the same of one value that stands twice', () => {
    const shared = ['a', 'b'];
    expect(yamlText({ one: shared, two: shared })).toBe('one:\n  - a\n  - b\ntwo:\n  - a\n  - b\n');
  });

  it('never folds a long line', () => {
    const long = 'word '.repeat(100).trim();
    expect(yamlText({ long })).toBe(`long: "${long}"\n`);
  });
});
