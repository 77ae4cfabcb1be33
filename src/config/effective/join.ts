// SPDX-License-Identifier: Apache-2.0
import type { ConfigFile } from '../schema/index.ts';
import type { SecretSource } from '../secrets/secret-source.ts';
import { type BuildContext, toMs, toOptionalPath, toSecretSource } from './convert.ts';

type Recipes = ConfigFile['join'];
type Recipe = NonNullable<Recipes[keyof Recipes]>;

export type JoinToken =
  | { readonly kind: 'auto' }
  | { readonly kind: 'static'; readonly source: SecretSource };

export function buildJoin({ k3s, rke2, kubeadm, custom }: Recipes, context: BuildContext) {
  return {
    k3s: k3s === undefined ? undefined : buildAgent(k3s, context),
    rke2: rke2 === undefined ? undefined : buildAgent(rke2, context),
    kubeadm:
      kubeadm === undefined
        ? undefined
        : {
            ...buildGuest(kubeadm, context),
            via: kubeadm.via,
            server: kubeadm.server,
            caCertHashes: kubeadm.caCertHashes,
            kubeletArgs: kubeadm.kubeletArgs,
          },
    custom:
      custom === undefined
        ? undefined
        : {
            ...buildGuest(custom, context),
            via: custom.via,
            scriptPath: toOptionalPath(custom.scriptFile, context),
          },
  };
}

function buildAgent(
  recipe: NonNullable<Recipes['k3s']> | NonNullable<Recipes['rke2']>,
  context: BuildContext,
) {
  return {
    ...buildGuest(recipe, context),
    server: recipe.server,
    version: recipe.version,
    install: recipe.install,
    sha256: recipe.sha256?.toLowerCase(),
    downloadUrl: recipe.downloadUrl,
    registriesPath: toOptionalPath(recipe.registriesFile, context),
    agentArgs: recipe.agentArgs,
  };
}

function buildGuest(recipe: Recipe, context: BuildContext) {
  return {
    token: buildToken(recipe.token, context),
    tokenTtlMs: toMs(recipe.tokenTtl),
    packages: recipe.packages,
    files: recipe.files.map((file) => ({
      path: file.path,
      content: file.content,
      contentPath: toOptionalPath(file.contentFile, context),
      permissions: file.permissions,
    })),
    cloudConfigPath: toOptionalPath(recipe.cloudConfigFile, context),
    proxy: recipe.proxy,
  };
}

function buildToken(token: Recipe['token'], context: BuildContext): JoinToken {
  if (token === 'auto') return { kind: 'auto' };
  const { secretFile, secretEnv, secretRef } = token;
  const source = toSecretSource({ file: secretFile, env: secretEnv, ref: secretRef }, context);
  return source === undefined ? { kind: 'auto' } : { kind: 'static', source };
}
