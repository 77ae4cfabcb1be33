// SPDX-License-Identifier: Apache-2.0
// `npm run gen` writes every generated file; `npm run check` compares them. The list below names all of them.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { renderConfigReference, renderJsonSchema } from '../src/config/index.ts';
import { renderCliReference } from './cli-reference.ts';
import { definitionFiles } from './definition-files.ts';
import { renderErrorReference } from './error-reference.ts';
import {
  renderAdmissionManifest,
  renderAdmissionTemplate,
  renderPrometheusRule,
  renderRbacManifest,
  renderRbacTemplate,
  renderRightsReference,
  renderStateRole,
  renderStateRoleTemplate,
} from './manifests.ts';
import { renderMetricsReference } from './metrics-reference.ts';
import { generateProtobufFiles } from './protobuf-files.ts';

const root = join(import.meta.dirname, '..');

interface GeneratedFile {
  readonly path: string;
  readonly text: string;
}

export async function generatedFiles(): Promise<readonly GeneratedFile[]> {
  return [
    { path: 'docs/reference/config.md', text: renderConfigReference() },
    { path: 'docs/reference/config.schema.json', text: renderJsonSchema() },
    { path: 'docs/reference/errors.md', text: renderErrorReference() },
    { path: 'docs/reference/rights.md', text: renderRightsReference() },
    { path: 'deploy/manifests/rbac.yaml', text: renderRbacManifest() },
    { path: 'deploy/manifests/admission-policy.yaml', text: renderAdmissionManifest() },
    { path: 'deploy/chart/templates/rbac.yaml', text: renderRbacTemplate() },
    { path: 'deploy/chart/templates/admission-policy.yaml', text: renderAdmissionTemplate() },
    { path: 'deploy/kubernetes-state/role.yaml', text: renderStateRole() },
    { path: 'deploy/chart/templates/state-role.yaml', text: renderStateRoleTemplate() },
    {
      path: 'deploy/monitoring/prometheus-rule.yaml',
      text: renderPrometheusRule(
        await readFile(join(root, 'deploy/chart/files/alerts.yaml'), 'utf8'),
      ),
    },
    { path: 'docs/reference/metrics.md', text: renderMetricsReference() },
    { path: 'docs/reference/cli.md', text: await renderCliReference() },
    ...definitionFiles(),
    ...(await generateProtobufFiles(root)),
  ];
}

export async function staleFiles(files: readonly GeneratedFile[]): Promise<readonly string[]> {
  const current = await Promise.all(
    files.map(({ path }) => readFile(join(root, path), 'utf8').catch(() => undefined)),
  );
  return files.filter(({ text }, index) => current[index] !== text).map(({ path }) => path);
}

if (import.meta.main) {
  const files = await generatedFiles();
  const stale = new Set(await staleFiles(files));
  for (const { path, text } of files.filter((file) => stale.has(file.path))) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
    console.log(`wrote ${path}`);
  }
  console.log(`${files.length} generated files, ${stale.size} changed`);
}
