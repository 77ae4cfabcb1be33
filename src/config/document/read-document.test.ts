// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { configPathKey } from '../config-path.ts';
import { readDocument } from './read-document.ts';

function problems(text: string) {
  return readDocument(text).problems.map(({ line, col, message }) => `${line}:${col} ${message}`);
}

describe('YAML syntax errors', () => {
  it.each([
    [
      'a: b: c',
      ['1:4 a mapping cannot start here; check for a second colon or missing indentation'],
    ],
    ['a:\n\tb: 1', ['2:1 tabs are not allowed for indentation; use spaces']],
    [
      'a: 1\n---\nb: 2\n',
      ['2:1 a second YAML document starts here; a config file must be a single document'],
    ],
    [
      'a: "x\\q"',
      ['1:6 invalid escape sequence in double quotes; use single quotes for literal text'],
    ],
    ['a: !secret x', ['1:4 unknown YAML tag (!name); remove it']],
    ['a: *b', ['1:4 this alias (*name) refers to no earlier anchor (&name)']],
    ['- a', ["1:1 a config file must be a mapping: lines of the form 'key: value'"]],
    ['plain text', ["1:1 a config file must be a mapping: lines of the form 'key: value'"]],
    ['a: 1\nb: 2\na: 3', ["3:1 key 'a' is a duplicate; it first appears in line 1"]],
    ['? [x]\n: 1', ['1:3 a key must be plain text']],
    ['a: {<<: 3}', ["1:5 '<<' needs an alias of a mapping, or a list of such aliases"]],
    [
      'a: !x 1\na: 2',
      [
        '1:4 unknown YAML tag (!name); remove it',
        "2:1 key 'a' is a duplicate; it first appears in line 1",
      ],
    ],
    ['a: 1\nb: x\uFFFDy', ['2:5 the file is not UTF-8 text; save it as UTF-8']],
    ['\uFFFD\uFFFDa\0:\0 \0b\0', ['1:1 the file is not UTF-8 text; save it as UTF-8']],
    ['a\0:\0 \0b\0', ['1:2 the file is not UTF-8 text; save it as UTF-8']],
    ['\uFEFFa: b: c', problems('a: b: c')],
    ['a: &x [*x]', ['1:8 the file has too many values or is nested too deeply']],
  ])('reports %j', (text, expected) => {
    expect(problems(text)).toEqual(expected);
  });

  it('never quotes the source', () => {
    const secret = 'hunter2-hunter2';
    for (const text of [
      `a: "${secret}`,
      `a: [${secret}`,
      `a: ${secret}: ${secret}`,
      `${secret}`,
      `a: *${secret}`,
    ]) {
      expect(problems(text).join('\n')).not.toContain(secret);
    }
  });

  it('refuses too deep nesting and too large files', () => {
    expect(problems('['.repeat(20_000))).not.toEqual([]);
    expect(problems('#'.repeat(250_001))).toEqual([
      '1:1 the file is larger than 250 kB; this is not a config file',
    ]);
  });

  it('limits the size of expanded aliases', () => {
    const levels = 'bcdefgh'.split('');
    const bomb = ['a: &a [x,x,x,x,x,x,x,x,x]'];
    for (const [index, name] of levels.entries()) {
      const before = index === 0 ? 'a' : levels[index - 1];
      bomb.push(`${name}: &${name} [${Array(9).fill(`*${before}`).join(',')}]`);
    }
    expect(problems(bomb.join('\n'))).toEqual([
      expect.stringContaining('the file has too many values or is nested too deeply'),
    ]);
  });
});

describe('the document tree', () => {
  it('is empty for an empty file', () => {
    expect(readDocument('').tree).toEqual({});
    expect(readDocument('# nothing\n').tree).toEqual({});
  });

  it('resolves merge keys; keys of the mapping itself take precedence', () => {
    const text =
      'base: &b { x: 1, y: 2 }\nmore: &m { <<: *b, y: 3, z: 4 }\nown: { <<: [*m], z: 5 }\n';
    expect(readDocument(text).tree).toMatchObject({ own: { x: 1, y: 3, z: 5 } });
  });

  it('has the location of keys and values', () => {
    const { locations } = readDocument('pools:\n  - name: a\n    size: b\n');
    expect(locations.get(configPathKey(['pools', 0, 'size']))).toEqual({
      key: { line: 3, col: 5 },
      value: { line: 3, col: 11 },
    });
  });

  it('ignores an unknown tag', () => {
    const text =
      'a: !x 2\nb: !x 1.5\nc: !x true\nd: !x text\ne: !x ""\nf: !x "2"\ng: !x\nh: !x {i: 1}\n';
    expect(readDocument(text).tree).toEqual({
      a: 2,
      b: 1.5,
      c: true,
      d: 'text',
      e: '',
      f: '2',
      g: null,
      h: { i: 1 },
    });
  });

  it('ignores a byte order mark', () => {
    expect(readDocument('\uFEFFa: b').locations).toEqual(readDocument('a: b').locations);
    expect(readDocument('\uFEFFa: b').tree).toEqual({ a: 'b' });
  });

  it('locates a value at its alias and its children at the anchor', () => {
    const { locations } = readDocument('a: &x { k: 1 }\nb: *x\nc: &n 1\nd: *n\n');
    expect(locations.get(configPathKey(['b']))?.value).toEqual({ line: 2, col: 4 });
    expect(locations.get(configPathKey(['b', 'k']))?.value).toEqual({ line: 1, col: 12 });
    expect(locations.get(configPathKey(['d']))).toEqual({
      key: { line: 4, col: 1 },
      value: { line: 4, col: 4 },
    });
  });

  it('keeps a key named __proto__ as a key', () => {
    const { tree } = readDocument('__proto__: { polluted: 1 }');
    expect(Object.keys(tree ?? {})).toEqual(['__proto__']);
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
  });
});
