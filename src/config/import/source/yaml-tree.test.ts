// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { SourceTree } from './tree.ts';
import { readYaml, type YamlVersion } from './yaml-tree.ts';

function reader(text: string, version: YamlVersion = '1.2'): SourceTree {
  const result = readYaml(text, version);
  const [tree] = result.ok ? result.trees : [];
  if (tree === undefined) throw new Error('no tree');
  return tree;
}

function plain(tree: SourceTree): unknown {
  if (tree.kind === 'list') return tree.items.map(plain);
  if (tree.kind === 'scalar') return tree.value;
  return Object.fromEntries([...tree.entries].map(([key, child]) => [key, plain(child)]));
}

it('has the path and position of every value', () => {
  const tree = reader('a:\n  - b: 1\n    c: x\n');
  const list = tree.kind === 'map' ? tree.entries.get('a') : undefined;
  const item = list?.kind === 'list' ? list.items[0] : undefined;
  expect(item?.kind === 'map' ? item.entries.get('c') : undefined).toStrictEqual({
    kind: 'scalar',
    path: 'a[0].c',
    at: { line: 3, column: 5 },
    value: 'x',
  });
});

it('reads words and numbers according to the YAML version', () => {
  expect(plain(reader('a: yes\nb: 010\nc: 02:00:00'))).toStrictEqual({
    a: 'yes',
    b: 10,
    c: '02:00:00',
  });
  expect(plain(reader('a: yes\nb: 010', '1.1'))).toStrictEqual({ a: true, b: 8 });
});

it('keeps the source text of other scalar types', () => {
  expect(plain(reader('a: 2024-01-02\nb:\nc: .inf', '1.1'))).toStrictEqual({
    a: '2024-01-02',
    b: null,
    c: Number.POSITIVE_INFINITY,
  });
});

it('uses the last of two duplicate keys and reports it', () => {
  const result = readYaml('a: 1\nb: 2\na: 3', '1.1');
  expect(result).toMatchObject({ ok: true, repeated: [{ path: 'a', at: { line: 3, column: 1 } }] });
  expect(result.ok && result.trees.map(plain)).toStrictEqual([{ a: 3, b: 2 }]);
});

it('resolves aliases and merge keys', () => {
  const text = 'x: &x {a: 1, b: 2}\ny: {<<: *x, b: 3}\nz: *x\nw: {<<: [{a: 5}, *x]}';
  expect(plain(reader(text))).toStrictEqual({
    x: { a: 1, b: 2 },
    y: { a: 1, b: 3 },
    z: { a: 1, b: 2 },
    w: { a: 5, b: 2 },
  });
});

describe('readYaml refuses', () => {
  it.each([
    ['a: "x\nb: 1', 'missing'],
    ['a: b: c', 'mapping'],
    ['a: *nowhere', 'anchor'],
    ['a:\n\t- b', 'tab'],
    ['a: @x', 'put it in quotes'],
  ])('%j', (text, message) => {
    const result = readYaml(text, '1.2');
    expect(result.ok).toBe(false);
    expect(result.ok ? '' : result.problems.map((problem) => problem.message).join()).toContain(
      message,
    );
  });

  it.each([
    ['nesting without end', '['.repeat(20_000)],
    ['nesting that closes', `${'['.repeat(60)}${']'.repeat(60)}`],
    ['a list of itself', 'a: &a [*a]'],
    [
      'aliases that multiply',
      `a: &a [1,1,1,1,1,1,1,1,1]\n${['b', 'c', 'd', 'e', 'f']
        .map((name, at) => `${name}: &${name} [${Array(9).fill(`*${'abcdef'[at]}`).join(',')}]`)
        .join('\n')}`,
    ],
  ])('%s', (_name, text) => {
    expect(readYaml(text, '1.2')).toMatchObject({ ok: false });
  });
});
