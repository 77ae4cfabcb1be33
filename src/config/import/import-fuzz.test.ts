// SPDX-License-Identifier: Apache-2.0
// For any input: no exception, no secret in the output, and the output is valid.
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { SOURCE_SYSTEMS, type SourceSystem } from '../source-systems.ts';
import { loadProblems } from '../testing/load-text.ts';
import { importConfig } from './index.ts';
import { type ImportResult } from './result.ts';
import { FIXTURES, readFixture } from './testing/import-text.ts';

const RUNS = { numRuns: 300 };
const PLANTED =
  /planted-[a-z-]+|0d9c1a52-7e0b-4c55-9d0e-2f4b6a8c1e37|5b1f7e02-93a4-4d6c-8f10-6a7b8c9d0e1f/g;

function expectValid(result: ImportResult): void {
  if (!result.ok) {
    expect(result.problems.length).toBeGreaterThan(0);
    return;
  }
  expect(loadProblems(result.yaml).filter((line) => line.includes(': error: '))).toStrictEqual([]);
}

function run(from: SourceSystem, text: string): ImportResult {
  const result = importConfig({ from, fileName: 'theirs', text });
  expectValid(result);
  return result;
}

const system = fc.constantFrom(...SOURCE_SYSTEMS);

it('importConfig never throws on any text', () => {
  fc.assert(
    fc.property(system, fc.oneof(fc.string(), fc.string({ unit: 'binary' })), (from, text) => {
      run(from, text);
    }),
    RUNS,
  );
});

const WORDS =
  'proxmox: k3s: node_groups: providers: nodePools: schemaVersion: vms: vm_template: vm_sizes: pxe_host= pxe_user= try: except: os.environ[ min_size= id name type proxmox options 1 -1 0 true null ~';
const SIGNS = ['\n', '\n  ', '\n    ', ' ', '- ', '"', "'", '{', '}', '[', ']', '|', '&a ', '*a'];
const pieces = fc.constantFrom(...WORDS.split(' '), ...SIGNS, '<<: ', ': ', '#', '\t', '=');

it('importConfig never throws on text built from typical keys and values', () => {
  fc.assert(
    fc.property(system, fc.array(pieces, { maxLength: 40 }), (from, words) => {
      run(from, words.join(''));
    }),
    { numRuns: 500 },
  );
});

type Mutation = (text: string, at: number, other: number) => string;

const place = (text: string, at: number) => Math.floor(at * text.length);
const lines = (text: string, at: number) => {
  const all = text.split('\n');
  return { all, index: Math.min(Math.floor(at * all.length), all.length - 1) };
};

const MUTATIONS: Readonly<Record<string, Mutation>> = {
  'drop a character': (text, at) =>
    text.slice(0, place(text, at)) + text.slice(place(text, at) + 1),
  'repeat a character': (text, at) =>
    text.slice(0, place(text, at) + 1) + text.slice(place(text, at)),
  'cut the end off': (text, at) => text.slice(0, place(text, at)),
  'drop a line': (text, at) => {
    const { all, index } = lines(text, at);
    return all.toSpliced(index, 1).join('\n');
  },
  'repeat a line': (text, at) => {
    const { all, index } = lines(text, at);
    return all.toSpliced(index, 0, all[index] ?? '').join('\n');
  },
  'join two lines': (text, at) => {
    const { all, index } = lines(text, at);
    return all.toSpliced(index, 2, `${all[index]} ${all[index + 1]?.trim()}`).join('\n');
  },
  'swap two lines': (text, at, other) => {
    const { all, index } = lines(text, at);
    const second = lines(text, other).index;
    return all
      .with(index, all[second] ?? '')
      .with(second, all[index] ?? '')
      .join('\n');
  },
  'indent a line': (text, at) => {
    const { all, index } = lines(text, at);
    return all.with(index, `  ${all[index]}`).join('\n');
  },
  'empty a value': (text, at) => {
    const { all, index } = lines(text, at);
    return all.with(index, (all[index] ?? '').replace(/([:=]) .*/, '$1')).join('\n');
  },
  'change the type of a value': (text, at, other) => {
    const { all, index } = lines(text, at);
    const values = [
      '-1',
      '0',
      '99999999999999999999',
      '[]',
      '{}',
      'null',
      'true',
      '""',
      '"a b"',
      '.nan',
      '1.5',
    ];
    const value = values[Math.floor(other * values.length)] ?? '';
    return all.with(index, (all[index] ?? '').replace(/([:=]) .*/, `$1 ${value}`)).join('\n');
  },
};

const mutated = fc
  .record({
    source: fc.constantFrom(...FIXTURES),
    changes: fc.array(
      fc.record({
        kind: fc.constantFrom(...Object.values(MUTATIONS)),
        at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        other: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      }),
      { minLength: 1, maxLength: 2 },
    ),
  })
  .map(({ source: [from, name], changes }) => ({
    from,
    text: changes.reduce((text, { kind, at, other }) => kind(text, at, other), readFixture(name)),
  }));

it('handles mutated files: the output is valid or refused, without secrets', () => {
  fc.assert(
    fc.property(mutated, ({ from, text }) => {
      const shown = JSON.stringify(run(from, text));
      expect(shown.match(PLANTED) ?? []).toStrictEqual([]);
    }),
    { numRuns: 400 },
  );
});

it('does not import a value that contains a secret', () => {
  const text = readFixture('externalgrpc/minimal.yaml').replace(
    '- id: workers',
    '- id: workers\n    labels: [note=planted-minimal-token, planted-minimal-token=x]',
  );
  const shown = JSON.stringify(run('externalgrpc', text));
  expect(shown).toContain('may contain a secret');
  expect(shown).not.toContain('planted');
});

it.each(FIXTURES)('never outputs a secret of %s %s', (from, name) => {
  const text = readFixture(name);
  const shown = JSON.stringify(run(from, text));
  for (const [secret] of text.matchAll(PLANTED)) expect(shown).not.toContain(secret);
});
