// SPDX-License-Identifier: Apache-2.0
// The CustomResourceDefinitions as files for kubectl, and the same files for the chart.
import { stringify } from 'yaml';
import { poolDefinition } from '../src/config/index.ts';
import { RESOURCE_DEFINITIONS } from '../src/kubernetes/index.ts';

const HEADER = '# Made by `npm run gen`; do not edit.\n';
const FOLDERS = ['deploy/crds', 'deploy/chart/crds'] as const;

/** All definitions that are installed. */
const DEFINITIONS = [...RESOURCE_DEFINITIONS, poolDefinition()];

export function definitionFiles(): readonly { readonly path: string; readonly text: string }[] {
  return FOLDERS.flatMap((folder) =>
    DEFINITIONS.map((definition) => ({
      path: `${folder}/${definition.metadata.name.split('.')[0]}.yaml`,
      text: `${HEADER}${stringify(definition, { lineWidth: 120, aliasDuplicateObjects: false })}`,
    })),
  );
}
