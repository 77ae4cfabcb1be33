// SPDX-License-Identifier: Apache-2.0
// Images are verified, and templates can be found.
import { errorAt, errorAtKey, type Finding, warningAt } from '../issues/finding.ts';
import type { ConfigFile, ImageFile, TemplateFile } from '../schema/index.ts';
import type { CheckContext } from './check-context.ts';
import { checkReference } from './references.ts';

export function checkSources(file: ConfigFile, scope: CheckContext): readonly Finding[] {
  return [
    ...Object.entries(file.images).flatMap(([name, image]) => checkImage(name, image)),
    ...Object.entries(file.templates).flatMap(([name, template]) =>
      checkTemplate(name, template, scope),
    ),
  ];
}

function checkImage(name: string, image: ImageFile): readonly Finding[] {
  const path = ['images', name];
  const given = (['checksumUrl', 'checksum'] as const).filter((key) => image[key] !== undefined);
  if (given.length === 2) {
    return [
      errorAtKey(
        [...path, 'checksum'],
        "cannot be combined with 'checksumUrl'; keep only one of them",
      ),
    ];
  }
  if (image.unverified) {
    return given.length > 0
      ? [
          errorAtKey(
            [...path, 'unverified'],
            `cannot be combined with '${given[0]}'; keep only one of them`,
          ),
        ]
      : [
          warningAt(
            path,
            'the image is not verified; an attacker who controls the download controls your nodes',
          ),
        ];
  }
  return given.length === 0
    ? [
        errorAt(
          path,
          "needs 'checksumUrl' or 'checksum', or 'unverified: true' to accept the image without a checksum",
        ),
      ]
    : [];
}

function checkTemplate(
  name: string,
  template: TemplateFile,
  scope: CheckContext,
): readonly Finding[] {
  const path = ['templates', name];
  const findings: Finding[] = [];
  if (template.name === undefined && template.id === undefined) {
    findings.push(errorAt(path, "needs 'name' or 'id' to identify the template"));
  }
  for (const [index, { key, keyUrl }] of template.sources.entries()) {
    if ((key === undefined) === (keyUrl === undefined))
      findings.push(errorAt([...path, 'sources', index], "needs either 'key' or 'keyUrl'"));
  }
  if (template.image !== undefined) {
    findings.push(
      ...checkReference({
        path: [...path, 'image'],
        name: template.image,
        kind: 'image',
        section: 'images',
        defined: scope.entryNames('images'),
      }),
    );
  }
  return findings;
}
