// SPDX-License-Identifier: Apache-2.0
// Join recipes of the config, with their files read. Tokens are read again for each machine.
import type { Config } from '../config/index.ts';
import type { JoinSettings, TokenSettings } from '../fleet/index.ts';
import { InvalidConfig } from '../ports/errors.ts';
import type { SetupContext } from './context.ts';

type Recipes = Config['join'];
type Recipe = NonNullable<Recipes[keyof Recipes]>;
export type JoinKind = keyof Recipes;

export type JoinsByKind = Readonly<Partial<Record<JoinKind, JoinSettings>>>;

interface ReadOptions {
  readonly context: SetupContext;
  readonly cluster: Config['cluster'];
  /** URL of the API server; undefined without access to the cluster. */
  readonly server: string | undefined;
  readonly warn: (warning: string) => void;
  readonly checksTokens: boolean;
}

/** Only recipes that a pool uses. */
export async function readJoinSettings(
  config: Config,
  given: Omit<ReadOptions, 'cluster'>,
): Promise<JoinsByKind> {
  const options = { ...given, cluster: config.cluster };
  const { k3s, rke2, kubeadm, custom } = config.join;
  const isUsed = (kind: JoinKind) => config.pools.some((pool) => pool.join === kind);
  return {
    ...(k3s !== undefined && isUsed('k3s') && { k3s: await readAgentRecipe('k3s', k3s, options) }),
    ...(rke2 !== undefined &&
      isUsed('rke2') && { rke2: await readAgentRecipe('rke2', rke2, options) }),
    ...(kubeadm !== undefined &&
      isUsed('kubeadm') && {
        kubeadm: {
          kind: 'kubeadm',
          ...(await readGuestFiles(kubeadm, options)),
          via: kubeadm.via,
          server: kubeadm.server ?? requireServer(options),
          caCertHashes: kubeadm.caCertHashes,
          kubeletArgs: kubeadm.kubeletArgs,
        } as const,
      }),
    ...(custom !== undefined &&
      isUsed('custom') && {
        custom: {
          kind: 'custom',
          ...(await readGuestFiles(custom, options)),
          via: custom.via,
          script: await readOptionalFile(custom.scriptPath, options),
        } as const,
      }),
  };
}

async function readAgentRecipe(
  kind: 'k3s' | 'rke2',
  recipe: NonNullable<Recipes['k3s']>,
  options: ReadOptions,
): Promise<JoinSettings> {
  const { server, version, install, downloadUrl, sha256, agentArgs } = recipe;
  return {
    kind,
    ...(await readGuestFiles(recipe, options)),
    via: 'cloud-init',
    server,
    version,
    install,
    downloadUrl,
    sha256,
    registries: await readOptionalFile(recipe.registriesPath, options),
    agentArgs,
  };
}

async function readGuestFiles(recipe: Recipe, options: ReadOptions) {
  const files = await Promise.all(
    recipe.files.map(async ({ path, content, contentPath, permissions }) => ({
      path,
      content: content ?? (await readOptionalFile(contentPath, options)) ?? '',
      permissions,
    })),
  );
  return {
    token: await readToken(recipe, options),
    packages: recipe.packages,
    files,
    cloudConfig: await readOptionalFile(recipe.cloudConfigPath, options),
    proxy: recipe.proxy,
  };
}

/**
 * Reads the token once to report errors at the start, unless the caller creates no machines. Each machine reads it again,
 * so that a new token is picked up.
 */
async function readToken(
  { token, tokenTtlMs }: Recipe,
  { context, cluster, warn, checksTokens }: ReadOptions,
): Promise<TokenSettings> {
  if (token.kind === 'auto') return { kind: 'auto', ttlMs: tokenTtlMs };
  const { adapters } = context;
  const read = () => adapters.readSecret(token.source, cluster);
  if (checksTokens) {
    const { value, warnings } = await read();
    for (const warning of warnings) warn(warning);
    if (value.includes('::server:')) {
      warn(
        'the join token is a server token: anyone who reads a seed ISO could add a server; use an agent token',
      );
    }
  }
  return { kind: 'static', read: async () => (await read()).value };
}

async function readOptionalFile(
  path: string | undefined,
  { context }: ReadOptions,
): Promise<string | undefined> {
  if (path === undefined) return undefined;
  const text = await context.files.read(path).catch((cause: unknown) => {
    throw new InvalidConfig('CONFIG_UNREADABLE', `cannot read ${path}: ${String(cause)}`, {
      cause,
    });
  });
  if (text === undefined) throw new InvalidConfig('CONFIG_UNREADABLE', `${path} does not exist`);
  return text;
}

function requireServer({ server }: ReadOptions): string {
  if (server !== undefined) return server;
  throw new InvalidConfig(
    'CONFIG_INVALID',
    'join.kubeadm.server is not set, and no kubeconfig gives the URL of the API server',
  );
}
