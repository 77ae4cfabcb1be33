// SPDX-License-Identifier: Apache-2.0
// Join recipes: one token, one content per file, and something to run.
import type { ConfigPath } from '../config-path.ts';
import { errorAt, errorAtKey, type Finding } from '../issues/finding.ts';
import type { ConfigFile } from '../schema/index.ts';
import { JOIN_KINDS } from '../schema/join.ts';
import { checkSecretSource } from './secret-source.ts';

type Recipe = NonNullable<ConfigFile['join'][keyof ConfigFile['join']]>;

export function checkJoin({ join }: ConfigFile): readonly Finding[] {
  return [
    ...JOIN_KINDS.flatMap((kind) => {
      const recipe = join[kind];
      return recipe === undefined ? [] : checkRecipe(['join', kind], recipe);
    }),
    ...checkCustom(join.custom),
  ];
}

function checkRecipe(path: ConfigPath, recipe: Recipe): readonly Finding[] {
  const token =
    recipe.token === 'auto'
      ? []
      : checkSecretSource([...path, 'token'], recipe.token, { prefix: 'secret', isNeeded: true });
  return [
    ...token,
    ...recipe.files.flatMap((file, index) => checkGuestFile([...path, 'files', index], file)),
  ];
}

function checkGuestFile(path: ConfigPath, file: Recipe['files'][number]): readonly Finding[] {
  if (file.content === undefined && file.contentFile === undefined) {
    return [errorAt(path, "needs 'content' or 'contentFile'")];
  }
  return file.content !== undefined && file.contentFile !== undefined
    ? [
        errorAtKey(
          [...path, 'contentFile'],
          "cannot be combined with 'content'; keep only one of them",
        ),
      ]
    : [];
}

function checkCustom(custom: ConfigFile['join']['custom']): readonly Finding[] {
  if (custom === undefined) return [];
  const path = ['join', 'custom'];
  if (custom.scriptFile === undefined && custom.cloudConfigFile === undefined) {
    return [errorAt(path, "needs 'scriptFile' or 'cloudConfigFile'")];
  }
  return custom.via === 'agent' && custom.scriptFile === undefined
    ? [errorAt(path, "needs 'scriptFile' when 'via' is 'agent'")]
    : [];
}
