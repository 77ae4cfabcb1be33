// SPDX-License-Identifier: Apache-2.0
// Breaks every direction on purpose: a check that cannot fail would pass here too, and that fails the test.
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
import { ROOMS } from './directions.ts';

const root = join(import.meta.dirname, '../..');
const made: string[] = [];

function aTree(files: Readonly<Record<string, string>>): string {
  const base = mkdtempSync(join(tmpdir(), 'layering-'));
  made.push(base);
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
  for (const base of made.splice(0)) rmSync(base, { recursive: true, force: true });
});

const rooms = Object.keys(ROOMS);
const upTo = (room: string) => '../'.repeat(room.split('/').length);

describe('layering', () => {
  it('holds for this tree, and saw it', async () => {
    const report = await checkLayering(root);
    expect(report.violations).toEqual([]);
    expect(report.modules).toBeGreaterThan(50);
  });

  it('refuses every import that the table does not list, in values and in types', async () => {
    const files: Record<string, string> = {};
    const expected: string[] = [];
    for (const from of rooms) {
      files[`src/${from}/index.ts`] = 'export const here = 1;\n';
      for (const to of rooms.filter(
        (name) => name !== from && !ROOMS[from]?.imports.includes(name),
      )) {
        const path = `src/${from}/breaks-${to.replace('/', '-')}.ts`;
        files[path] =
          `import type { here } from '${upTo(from)}${to}/index.ts';\nexport type X = typeof here;\n`;
        expected.push(`directions: ${from}: ${path} imports src/${to}/index.ts`);
      }
    }
    const { violations } = await checkLayering(aTree(files));
    for (const line of expected) expect(violations).toContain(line);
    expect(expected.length).toBeGreaterThan(200);
  });

  it('accepts every import that the table lists', async () => {
    const files: Record<string, string> = {};
    for (const from of rooms) {
      files[`src/${from}/index.ts`] = 'export const here = 1;\n';
      for (const to of ROOMS[from]?.imports ?? []) {
        files[`src/${from}/uses-${to.replace('/', '-')}.ts`] =
          `export { here } from '${upTo(from)}${to}/index.ts';\n`;
      }
    }
    const { violations } = await checkLayering(aTree(files));
    expect(violations).toEqual([]);
  });

  it.each([
    [
      'a pure room reads a file',
      { 'src/model/a.ts': "import 'node:fs';\n" },
      /pure: model uses no Node API/,
    ],
    [
      'a pure room takes a package',
      { 'src/scheduling/a.ts': "import 'zod';\n" },
      /pure: scheduling uses no package/,
    ],
    [
      'somebody reaches past an entry',
      {
        'src/fleet/inner.ts': 'export const a = 1;\n',
        'src/cli/a.ts': "export { a } from '../fleet/inner.ts';\n",
      },
      /entry: fleet is entered through index\.ts/,
    ],
    [
      'two files need each other',
      {
        'src/model/a.ts': "export * from './b.ts';\n",
        'src/model/b.ts': "export * from './a.ts';\n",
      },
      /no cycles/,
    ],
    [
      'a folder without a room, even if nothing in it imports anything',
      { 'src/utils/a.ts': 'export const a = 1;\n' },
      /every file has a room: src\/utils\/a\.ts/,
    ],
    [
      'generated code that breaks a direction',
      {
        'src/store/index.ts': 'export const a = 1;\n',
        'src/model/gen/a.ts': "export * from '../../store/index.ts';\n",
      },
      /directions: model/,
    ],
    [
      'a test that reaches past an entry',
      {
        'src/store/inner.ts': 'export const a = 1;\n',
        'test/cli/a.ts': "export * from '../../src/store/inner.ts';\n",
      },
      /entry: store is entered through index\.ts/,
    ],
    [
      'a file beside main.ts',
      { 'src/helpers.ts': 'export const a = 1;\n' },
      /every file has a room: src\/helpers\.ts/,
    ],
    [
      'an import of main.ts',
      { 'src/main.ts': 'export const a = 1;\n', 'src/cli/a.ts': "export * from '../main.ts';\n" },
      /nobody imports a composition root/,
    ],
    [
      'the page past its contract',
      {
        'src/fleet/index.ts': 'export const a = 1;\n',
        'ui/page.ts': "export * from '../src/fleet/index.ts';\n",
      },
      /ui knows only the contract/,
    ],
    [
      'the simulator using the client',
      {
        'src/proxmox/index.ts': 'export const a = 1;\n',
        'src/sim/proxmox/a.ts': "export * from '../../proxmox/index.ts';\n",
      },
      /directions: sim\/proxmox/,
    ],
    [
      'an import that leads nowhere',
      { 'src/model/a.ts': "export * from './missing.ts';\n" },
      /everything resolves/,
    ],
  ])('notices %s', async (_case, files, rule) => {
    const { violations } = await checkLayering(
      aTree({ 'src/model/ok.ts': 'export const ok = 1;\n', ...files }),
    );
    expect(violations.join('\n')).toMatch(rule);
  });

  it('has a room for every folder of the design, with a page that says what it is for', () => {
    for (const room of rooms) {
      const text = readFileSync(join(root, 'src', room, 'README.md'), 'utf8');
      expect(text.split('\n').length, `src/${room}/README.md`).toBeLessThanOrEqual(31);
    }
    const folders = readdirSync(join(root, 'src'), { withFileTypes: true }).filter((entry) =>
      entry.isDirectory(),
    );
    expect(folders.map(({ name }) => name).sort()).toEqual(
      [...new Set(rooms.map((room) => room.split('/')[0]))].sort(),
    );
  });
});
