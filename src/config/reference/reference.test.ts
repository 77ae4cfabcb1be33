// SPDX-License-Identifier: Apache-2.0
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { FLAGS, VARIABLES } from '../overrides/variables.ts';
import { schemaTree } from '../schema/tree.ts';
import { starterConfig } from '../starter/starter-config.ts';
import { findSchemaViolations } from '../testing/json-schema-check.ts';
import { loadProblems, loadText, VALID } from '../testing/load-text.ts';
import { JSON_SCHEMA_ID, renderJsonSchema } from './json-schema.ts';
import { renderConfigReference } from './markdown.ts';
import { referenceRows } from './rows.ts';

const EXAMPLES = join(import.meta.dirname, '../../../examples');
const examples = readdirSync(EXAMPLES)
  .filter((name) => name.endsWith('.yaml'))
  .map((name) => [name, readFileSync(join(EXAMPLES, name), 'utf8')] as const);

const schema: unknown = JSON.parse(renderJsonSchema());

describe('example configs', () => {
  it('exist', () => {
    expect(examples.length).toBeGreaterThanOrEqual(5);
  });

  it.each(examples)('%s is valid without warnings', (_, text) => {
    expect(loadProblems(text)).toEqual([]);
  });

  it.each(examples)('%s matches the JSON Schema', (_, text) => {
    expect(findSchemaViolations(schema, parse(text, { merge: true }))).toEqual([]);
  });
});

describe('JSON Schema', () => {
  it('has an id and a title', () => {
    expect(schema).toMatchObject({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $id: JSON_SCHEMA_ID,
      type: 'object',
      additionalProperties: false,
    });
  });

  it('contains none of our x- keywords', () => {
    expect(renderJsonSchema()).not.toMatch(/"x-(type|forms|note|replaces|default)"/);
  });

  it.each([
    [{ mod: 'x' }, '$.mod: unknown'],
    [{ mode: 'x' }, '$.mode: enum'],
    [{ intervals: { scan: '15 sec' } }, '$.intervals.scan: pattern'],
    [{ pools: [{ name: 'a' }] }, '$.pools[0]: lacks size'],
    [{ pools: [{ name: 'a', size: 3 }] }, '$.pools[0].size: no form fits'],
    [{ images: { a: {} } }, '$.images.a: lacks url'],
  ])('refuses %j', (value, violation) => {
    expect(findSchemaViolations(schema, value)).toEqual([violation]);
  });

  it('describes every key', () => {
    for (const { key, node } of referenceRows(schemaTree(), '')) {
      expect(node.description, key).toMatch(/\S/);
    }
  });
});

describe('the reference page', () => {
  const page = renderConfigReference();

  it('has every key, variable and flag', () => {
    for (const { key } of referenceRows(schemaTree().properties?.['pools']?.items ?? {}, '')) {
      expect(page).toContain(`| \`${key}\` |`);
    }
    for (const { name } of [...VARIABLES, ...FLAGS]) expect(page).toContain(`\`${name}\``);
  });

  it('lists replaced settings and notes', () => {
    const scan = page.split('\n').find((line) => line.startsWith('| `scan`'));
    expect(scan).toContain(
      '`scan_interval` (proxmox-autoscaler), `pollingInterval` (KubeNodeSmith)',
    );
    expect(scan).toContain(
      'the default is 15 s as in proxmox-autoscaler, not 30 s as in KubeNodeSmith',
    );
  });

  it('has one table row per line', () => {
    const rows = page.split('\n').filter((line) => line.startsWith('|'));
    expect(rows.every((row) => row.endsWith('|'))).toBe(true);
  });
});

describe('config init', () => {
  it.each([
    {},
    { full: true },
    { mode: 'externalgrpc' as const },
    { mode: 'externalgrpc' as const, full: true },
  ])('with %j is valid', (options) => {
    const text = starterConfig(options);
    expect(loadProblems(text)).toEqual([]);
    expect(text).toContain('CHANGE');
    expect(findSchemaViolations(schema, parse(text))).toEqual([]);
  });

  it('with full contains every key of a pool', () => {
    const text = starterConfig({ full: true });
    for (const key of Object.keys(schemaTree().properties?.['pools']?.items?.properties ?? {})) {
      expect(text).toMatch(new RegExp(`^# +(- )?${key}:`, 'm'));
    }
  });

  it('with full shows the defaults', () => {
    const loaded = loadText(VALID);
    expect(loaded.ok && loaded.file.intervals).toEqual({ reconcile: '20s', scan: '15s' });
    expect(starterConfig({ full: true })).toContain('#   reconcile: 20s');
  });
});
