// SPDX-License-Identifier: Apache-2.0
// For any file and environment: loading never throws, and no message contains a secret.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { type ConfigPath, isMapping } from '../config-path.ts';
import { setAt } from '../overrides/tree-edit.ts';
import { VARIABLES } from '../overrides/variables.ts';
import { renderProblems } from '../problem.ts';
import { renderConfigJson, renderConfigYaml } from '../show/show-config.ts';
import { starterConfig } from '../starter/starter-config.ts';
import { loadText } from '../testing/load-text.ts';

function everythingSaid(
  text: string | undefined,
  environment: Record<string, string> = {},
): string {
  const loaded = loadText(text, { environment });
  const problems = `${renderProblems(loaded.problems)}${JSON.stringify(loaded.problems)}`;
  if (!loaded.ok) return problems;
  return [
    problems,
    renderConfigYaml(loaded),
    JSON.stringify(renderConfigJson(loaded)),
    JSON.stringify(loaded.planned),
  ].join('\n');
}

/** Typical formats of secrets. */
const secret = fc.oneof(
  fc.uuid(),
  fc.stringMatching(/^K10[0-9a-f]{64}::server:[0-9a-f]{32}$/),
  fc.stringMatching(/^[a-z0-9]{6}\.[a-z0-9]{16}$/),
  fc.stringMatching(/^eyJ[A-Za-z0-9]{20}\.[A-Za-z0-9]{20}\.[A-Za-z0-9]{20}$/),
);

const started: Record<string, unknown> = parse(starterConfig({ mode: 'externalgrpc' }));

/** Paths of free text, which may contain a secret. */
const FREE_TEXTS = {
  labels: { tier: 'small', 'example.com/kind': 'x' },
  taints: ['key=v:NoSchedule', { key: 'key', value: 'v', effect: 'NoExecute' }],
  vmOptions: { cpu: 'host' },
  schedules: [{ name: 'day', start: '0 7 * * 1-5', duration: '8h' }],
};

function withFreeTexts(pool: unknown): unknown {
  return isMapping(pool) ? { ...pool, from: { template: 't' }, join: 'k3s', ...FREE_TEXTS } : pool;
}

const full = stringify({
  ...started,
  guards: { backoff: { initial: '1m' } },
  templates: { t: { name: 't', id: 9000 } },
  join: {
    k3s: {
      server: 'https://k3s.example:6443',
      agentArgs: ['--kubelet-arg=v=4', '--node-name', 'n'],
      packages: ['curl'],
      files: [{ path: '/etc/x', content: 'y' }],
      proxy: { http: 'http://proxy.example:3128', none: ['localhost'] },
    },
    kubeadm: { kubeletArgs: ['v=4', '--client-ca', 'x'] },
  },
  pools: Array.isArray(started['pools']) ? started['pools'].map(withFreeTexts) : [],
});

it('starts from a valid file', () => {
  expect(loadText(full).problems.filter(({ severity }) => severity === 'error')).toEqual([]);
});

function pathsOf(value: unknown, path: ConfigPath = []): readonly ConfigPath[] {
  const children: readonly (readonly [string | number, unknown])[] = Array.isArray(value)
    ? value.map((item: unknown, index) => [index, item])
    : isMapping(value)
      ? Object.entries(value)
      : [];
  return [
    ...(path.length === 0 ? [] : [path]),
    ...children.flatMap(([step, child]) => pathsOf(child, [...path, step])),
  ];
}

const path = fc.constantFrom(...pathsOf(parse(full)));

const junk = fc.oneof(
  fc.constantFrom(
    null,
    true,
    '',
    [],
    {},
    [[]],
    [{}],
    { a: 1 },
    -1,
    1.5,
    Number.NaN,
    1e300,
    '5gb',
    '__proto__',
  ),
  fc.jsonValue({ maxDepth: 2 }),
);

describe('loadConfig never throws', () => {
  it('on any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), (text) => {
        expect(typeof everythingSaid(text)).toBe('string');
      }),
      { numRuns: 150 },
    );
  });

  it('on text built from YAML fragments', () => {
    const pieces = fc.constantFrom(
      'pools:',
      'proxmox:',
      'a',
      ': ',
      '\n',
      '  ',
      '- ',
      '{',
      '}',
      '[',
      ']',
      '&a ',
      '*a',
      '<<: ',
      '"',
      "'",
      '|\n',
      '>',
      '!!',
      '#',
      '---\n',
      '? ',
      '\t',
      ',',
      '0',
      '%',
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 40 }), (list) => {
        expect(typeof everythingSaid(list.join(''))).toBe('string');
      }),
      { numRuns: 250 },
    );
  });

  it('on a valid file with any value at any key', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(path, junk), { minLength: 1, maxLength: 3 }), (changes) => {
        const tree: Record<string, unknown> = parse(full);
        for (const [at, value] of changes) setAt(tree, at, value);
        expect(typeof everythingSaid(stringify(tree))).toBe('string');
      }),
      { numRuns: 200 },
    );
  });

  it('on a valid file with inserted or removed text', () => {
    const edit = fc.record({
      at: fc.nat(full.length),
      drop: fc.nat(12),
      put: fc.string({ maxLength: 6 }),
    });
    fc.assert(
      fc.property(fc.array(edit, { maxLength: 4 }), (edits) => {
        const text = edits.reduce(
          (now, { at, drop, put }) => now.slice(0, at) + put + now.slice(at + drop),
          full,
        );
        expect(typeof everythingSaid(text)).toBe('string');
      }),
      { numRuns: 150 },
    );
  });

  it('on any environment', () => {
    const variable = fc.constantFrom(...VARIABLES.map(({ name }) => name));
    fc.assert(
      fc.property(fc.dictionary(variable, fc.string()), fc.boolean(), (environment, hasFile) => {
        expect(typeof everythingSaid(hasFile ? full : undefined, environment)).toBe('string');
      }),
      { numRuns: 150 },
    );
  });
});

describe('loadConfig never reveals a secret', () => {
  it('at any key', () => {
    fc.assert(
      fc.property(path, secret, (at, value) => {
        const tree: Record<string, unknown> = parse(full);
        setAt(tree, at, value);
        expect(everythingSaid(stringify(tree))).not.toContain(value);
      }),
      { numRuns: 250 },
    );
  });

  it('that is a key itself', () => {
    fc.assert(
      fc.property(path, secret, (at, value) => {
        const tree: Record<string, unknown> = parse(full);
        setAt(tree, [...at.slice(0, -1), value], 'x');
        expect(everythingSaid(stringify(tree))).not.toContain(value);
      }),
      { numRuns: 150 },
    );
  });

  it('of a key that names a secret, even if the secret is weak', () => {
    const keys = fc.constantFrom(
      'secret',
      'password',
      'token',
      'passphrase',
      'token_secret',
      'apiKey',
      'cluster_token',
      'privateKey',
    );
    const weak = fc.stringMatching(/^[a-z]{4}[0-9]{4}[A-Z]{2}$/);
    fc.assert(
      fc.property(path, fc.tuple(keys, weak), (at, [key, value]) => {
        const tree: Record<string, unknown> = parse(full);
        setAt(tree, [...at.slice(0, -1), key], value);
        expect(everythingSaid(stringify(tree))).not.toContain(value);
      }),
      { numRuns: 150 },
    );
  });

  it('in an argument, a label or a taint, even if the secret is weak', () => {
    const names = fc.constantFrom('password', 'pwd', 'my-token', 'client-secret', 'joinKey');
    const weak = fc.stringMatching(/^[a-z]{4}[0-9]{4}[A-Z]{2}$/);
    const list = fc.constantFrom<ConfigPath>(
      ['join', 'k3s', 'agentArgs'],
      ['join', 'kubeadm', 'kubeletArgs'],
    );
    fc.assert(
      fc.property(list, names, weak, (at, name, value) => {
        const places: readonly (readonly [ConfigPath, unknown])[] = [
          [at, ['--v', '4', `--${name}`, value]],
          [at, [`--${name} ${value}`]],
          [at, [`--v=4 --${name} ${value}`]],
          [at, [`--${name}=${value}`]],
          [at, [`${name}=${value}`]],
          [['pools', 0, 'labels', name.replace('joinKey', 'join-key')], value],
          [['pools', 0, 'taints', 0], `${name}=${value}:NoSchedule`],
        ];
        for (const [path, text] of places) {
          const tree: Record<string, unknown> = parse(full);
          setAt(tree, path, text);
          expect(everythingSaid(stringify(tree))).not.toContain(value);
        }
      }),
      { numRuns: 20 },
    );
  });

  it('that is the closest match of an undefined name', () => {
    const token = '0aaaa0.0000000aa000a00a';
    expect(
      everythingSaid(
        full.replace('  medium:', `  ${token}:`).replace('size: medium', `size: ${token}0`),
      ),
    ).not.toContain(token);
  });

  it('in a file that is cut off', () => {
    const cut = fc.nat(full.length);
    fc.assert(
      fc.property(
        cut,
        secret,
        fc.constantFrom(': ', '\n', '"', '[', ' ', '- ', '*', '&', '!'),
        (at, value, glue) => {
          const text = `${full.slice(0, at)}${glue}${value}${glue}${full.slice(at)}`;
          expect(everythingSaid(text)).not.toContain(value);
        },
      ),
      { numRuns: 200 },
    );
  });

  it('in a variable', () => {
    const variable = fc.constantFrom(...VARIABLES.map(({ name }) => name));
    fc.assert(
      fc.property(variable, secret, (name, value) => {
        expect(everythingSaid(full, { [name]: value })).not.toContain(value);
      }),
      { numRuns: 150 },
    );
    for (const { name } of VARIABLES.filter(({ isSecret }) => isSecret === true)) {
      expect(everythingSaid(full, { [name]: 'weak' })).not.toContain('weak');
    }
  });
});
