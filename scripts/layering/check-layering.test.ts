// SPDX-License-Identifier: Apache-2.0
// Creates a violation of every direction and requires that the check reports it.
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { checkLayering } from './check-layering.ts';
import { LAYERS } from './directions.ts';

const root = join(import.meta.dirname, '../..');
const createdFolders: string[] = [];

function createTree(files: Readonly<Record<string, string>>): string {
  const base = mkdtempSync(join(tmpdir(), 'layering-'));
  createdFolders.push(base);
  cpSync(join(root, 'tsconfig.json'), join(base, 'tsconfig.json'));
  writeFileSync(join(base, 'package.json'), '{"type":"module"}');
  symlinkSync(join(root, 'node_modules'), join(base, 'node_modules'));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(base, path)), { recursive: true });
    writeFileSync(join(base, path), text);
  }
  return base;
}

afterEach(() => {
  for (const base of createdFolders.splice(0)) rmSync(base, { recursive: true, force: true });
});

const layers = Object.keys(LAYERS);
const upTo = (layer: string) => '../'.repeat(layer.split('/').length);

describe('layering', () => {
  it('finds no violation in this repository and reads its modules', async () => {
    const report = await checkLayering(root);
    expect(report.violations).toEqual([]);
    expect(report.modules).toBeGreaterThan(50);
  });

  it('refuses every import that the table does not list, in values and in types', async () => {
    const files: Record<string, string> = {};
    const expected: string[] = [];
    for (const from of layers) {
      files[`src/${from}/index.ts`] = 'export const here = 1;\n';
      for (const to of layers.filter(
        (name) => name !== from && !LAYERS[from]?.imports.includes(name),
      )) {
        const path = `src/${from}/breaks-${to.replace('/', '-')}.ts`;
        files[path] =
          `import type { here } from '${upTo(from)}${to}/index.ts';\nexport type X = typeof here;\n`;
        expected.push(`directions: ${from}: ${path} imports src/${to}/index.ts`);
      }
    }
    const { violations } = await checkLayering(createTree(files));
    for (const line of expected) expect(violations).toContain(line);
    expect(expected.length).toBeGreaterThan(200);
  });

  it('accepts every import that the table lists', async () => {
    const files: Record<string, string> = {};
    for (const from of layers) {
      files[`src/${from}/index.ts`] = 'export const here = 1;\n';
      for (const to of LAYERS[from]?.imports ?? []) {
        files[`src/${from}/uses-${to.replace('/', '-')}.ts`] =
          `export { here } from '${upTo(from)}${to}/index.ts';\n`;
      }
    }
    const { violations } = await checkLayering(createTree(files));
    expect(violations).toEqual([]);
  });

  it.each([
    [
      'a Node API in a pure layer',
      { 'src/model/a.ts': "import 'node:fs';\n" },
      /pure: model uses no Node API/,
    ],
    [
      'a package in a pure layer',
      { 'src/scheduling/a.ts': "import 'zod';\n" },
      /pure: scheduling uses no package/,
    ],
    [
      'an import that bypasses index.ts',
      {
        'src/fleet/inner.ts': 'export const a = 1;\n',
        'src/cli/a.ts': "export { a } from '../fleet/inner.ts';\n",
      },
      /entry: fleet is entered through index\.ts/,
    ],
    [
      'a cyclic import',
      {
        'src/model/a.ts': "export * from './b.ts';\n",
        'src/model/b.ts': "export * from './a.ts';\n",
      },
      /no cycles/,
    ],
    [
      'a folder that belongs to no layer, even without imports',
      { 'src/utils/a.ts': 'export const a = 1;\n' },
      /every file belongs to a layer: src\/utils\/a\.ts/,
    ],
    [
      'generated code that violates a direction',
      {
        'src/store/index.ts': 'export const a = 1;\n',
        'src/model/gen/a.ts': "export * from '../../store/index.ts';\n",
      },
      /directions: model/,
    ],
    [
      'a test that bypasses index.ts',
      {
        'src/store/inner.ts': 'export const a = 1;\n',
        'test/cli/a.ts': "export * from '../../src/store/inner.ts';\n",
      },
      /entry: store is entered through index\.ts/,
    ],
    [
      'a file beside main.ts',
      { 'src/helpers.ts': 'export const a = 1;\n' },
      /every file belongs to a layer: src\/helpers\.ts/,
    ],
    [
      'an import of main.ts',
      { 'src/main.ts': 'export const a = 1;\n', 'src/cli/a.ts': "export * from '../main.ts';\n" },
      /composition roots are not imported/,
    ],
    [
      'an import of the dashboard beside its contract',
      {
        'src/fleet/index.ts': 'export const a = 1;\n',
        'ui/page.ts': "export * from '../src/fleet/index.ts';\n",
      },
      /ui imports only the contract/,
    ],
    [
      'an import of the client by the simulator',
      {
        'src/proxmox/index.ts': 'export const a = 1;\n',
        'src/sim/proxmox/a.ts': "export * from '../../proxmox/index.ts';\n",
      },
      /directions: sim\/proxmox/,
    ],
    [
      'an unresolved import',
      { 'src/model/a.ts': "export * from './missing.ts';\n" },
      /everything resolves/,
    ],
  ])('reports %s', async (_case, files, rule) => {
    const { violations } = await checkLayering(
      createTree({ 'src/model/ok.ts': 'export const ok = 1;\n', ...files }),
    );
    expect(violations.join('\n')).toMatch(rule);
  });

  it('every folder of src belongs to a layer and has a README of at most 30 lines', () => {
    for (const layer of layers) {
      const text = readFileSync(join(root, 'src', layer, 'README.md'), 'utf8');
      expect(text.split('\n').length, `src/${layer}/README.md`).toBeLessThanOrEqual(31);
    }
    const folders = readdirSync(join(root, 'src'), { withFileTypes: true }).filter((entry) =>
      entry.isDirectory(),
    );
    expect(folders.map(({ name }) => name).sort()).toEqual(
      [...new Set(layers.map((layer) => layer.split('/')[0]))].sort(),
    );
  });
});
