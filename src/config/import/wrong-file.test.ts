// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { SOURCE_SYSTEMS, type SourceSystem } from '../source-systems.ts';
import { importConfig, renderImportProblems } from './index.ts';
import { FIXTURES, importProblems, readFixture } from './testing/import-text.ts';

const PAIRS = FIXTURES.flatMap(([owner, name]) =>
  SOURCE_SYSTEMS.filter((system) => system !== owner).map((from) => ({ from, owner, name })),
);

it.each(PAIRS)('refuses $name as a file of $from', ({ from, owner, name }) => {
  const [problem, ...more] = importProblems(from, readFixture(name));
  expect(more).toStrictEqual([]);
  expect(problem?.message).toBe(`this is a ${owner} file: use --from ${owner}`);
  expect(problem?.line).toBeGreaterThan(0);
});

it.each(SOURCE_SYSTEMS)('%s: reports an empty file', (from) => {
  for (const text of ['', '\n\n', '# nothing but a remark\n', '  \t\n  # x']) {
    expect(importProblems(from, text)).toStrictEqual([
      { file: 'theirs', line: 1, column: 1, message: 'is empty' },
    ]);
  }
});

it.each(SOURCE_SYSTEMS)('%s: refuses a file that is too large', (from) => {
  expect(importProblems(from, 'x'.repeat(1_000_001))[0]?.message).toContain('larger than');
});

describe('files of no supported system are refused', () => {
  const YAML_SYSTEMS = SOURCE_SYSTEMS.filter((system) => system !== 'proxmox-autoscaler');

  it.each(YAML_SYSTEMS)('%s: text, a list, unknown keys', (from) => {
    expect(importProblems(from, 'hello')[0]?.message).toContain('not a mapping');
    expect(importProblems(from, '- a')[0]?.message).toContain('not a mapping');
    expect(importProblems(from, 'a: 1')[0]?.message).toContain('contains no key of');
  });

  it.each(SOURCE_SYSTEMS)('%s: a pvescaler config', (from) => {
    const text = 'apiVersion: pvescaler.dev/v1alpha1\npools: []';
    expect(importProblems(from, text)[0]?.message).toContain('nothing to import');
  });

  it.each(SOURCE_SYSTEMS)('%s: the config of the Cluster Autoscaler', (from) => {
    const text = 'grpc_timeout: 5s\naddress: pvescaler:50051\nkey: /k\ncert: /c\ncacert: /ca';
    expect(importProblems(from, text)).toMatchObject([
      { line: 2, message: expect.stringContaining('--cloud-config') },
    ]);
  });

  it.each(SOURCE_SYSTEMS)('%s: Kubernetes objects', (from) => {
    const crd = 'apiVersion: kubenodesmith.io/v1alpha1\nkind: NodePool\nspec: {}';
    expect(importProblems(from, crd)[0]?.message).toContain('later KubeNodeSmith');
    const pod = 'apiVersion: v1\nkind: Pod\nspec: {}';
    expect(importProblems(from, pod)[0]?.message).toContain('Kubernetes object');
  });

  it('Python without any setting', () => {
    expect(importProblems('proxmox-autoscaler', 'import os\nx = 1')[0]?.message).toContain(
      'no setting',
    );
  });
});

it('reports problems inside a ConfigMap with the lines of the manifest', () => {
  const manifest = (inner: string) => `kind: ConfigMap\ndata:\n  config.yaml: |\n${inner}`;
  const cases: readonly (readonly [SourceSystem, string, number])[] = [
    ['externalgrpc', '    proxmox:\n      node: "x\n', 6],
    ['externalgrpc', '    a: 1\n    schemaVersion: v1alpha1\n', 5],
    ['kubenodesmith', '    pxe_host = 1\n', 4],
    ['vm-plan', '    a: 1\n', 4],
  ];
  for (const [from, inner, line] of cases) {
    expect(importProblems(from, manifest(inner))[0]).toMatchObject({ line });
  }
});

it('refuses an empty ConfigMap', () => {
  const text = 'kind: ConfigMap\napiVersion: v1\ndata: {}';
  expect(importProblems('vm-plan', text)[0]?.message).toContain('Kubernetes object');
});

it('reports the position of a syntax error without quoting it', () => {
  const text = 'proxmox:\n  token_secret: "planted-secret\n  node: a\n';
  const result = importConfig({ from: 'externalgrpc', fileName: 'their.yaml', text });
  const rendered = result.ok ? '' : renderImportProblems(result.problems);
  expect(rendered).toMatch(/^their\.yaml:\d+:\d+: /);
  expect(rendered).not.toContain('planted');
});
