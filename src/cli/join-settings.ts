// SPDX-License-Identifier: Apache-2.0
// How machines join, from what the config says: files are read now, tokens when they are sent.
import type { Config } from '../config/index.ts';
import type { JoinSettings, TokenSettings } from '../fleet/index.ts';
import { InvalidConfig } from '../ports/errors.ts';
import type { CliContext } from './context.ts';

type Recipes = Config['join'];
type Recipe = NonNullable<Recipes[keyof Recipes]>;
export type JoinKind = keyof Recipes;

export type JoinsByKind = Readonly<Partial<Record<JoinKind, JoinSettings>>>;

interface Sources {
  readonly context: CliContext;
  /** URL of the API server; undefined without access to the cluster. */
  readonly server: string | undefined;
  readonly warn: (warning: string) => void;
}

/** Of those recipes that a pool names. */
export async function joinSettings(config: Config, sources: Sources): Promise<JoinsByKind> {
  const { k3s, rke2, kubeadm, custom } = config.join;
  const isUsed = (kind: JoinKind) => config.pools.some((pool) => pool.join === kind);
  return {
    ...(k3s !== undefined && isUsed('k3s') && { k3s: await rancher('k3s', k3s, sources) }),
    ...(rke2 !== undefined && isUsed('rke2') && { rke2: await rancher('rke2', rke2, sources) }),
    ...(kubeadm !== undefined &&
      isUsed('kubeadm') && {
        kubeadm: {
          kind: 'kubeadm',
          ...(await guestOf(kubeadm, sources)),
          via: kubeadm.via,
          server: kubeadm.server ?? requireServer(sources),
          caCertHashes: kubeadm.caCertHashes,
          kubeletArgs: kubeadm.kubeletArgs,
        } as const,
      }),
    ...(custom !== undefined &&
      isUsed('custom') && {
        custom: {
          kind: 'custom',
          ...(await guestOf(custom, sources)),
          via: custom.via,
          script: await optionalText(custom.scriptPath, sources),
        } as const,
      }),
  };
}

async function rancher(
  kind: 'k3s' | 'rke2',
  recipe: NonNullable<Recipes['k3s']>,
  sources: Sources,
): Promise<JoinSettings> {
  const { server, version, install, downloadUrl, sha256, agentArgs } = recipe;
  return {
    kind,
    ...(await guestOf(recipe, sources)),
    via: 'cloud-init',
    server,
    version,
    install,
    downloadUrl,
    sha256,
    registries: await optionalText(recipe.registriesPath, sources),
    agentArgs,
  };
}

async function guestOf(recipe: Recipe, sources: Sources) {
  const files = await Promise.all(
    recipe.files.map(async ({ path, content, contentPath, permissions }) => ({
      path,
      content: content ?? (await optionalText(contentPath, sources)) ?? '',
      permissions,
    })),
  );
  return {
    token: await tokenOf(recipe, sources),
    packages: recipe.packages,
    files,
    cloudConfig: await optionalText(recipe.cloudConfigPath, sources),
    proxy: recipe.proxy,
  };
}

/** Read once to hear of trouble now; the value is read again for each machine, so that a new one is picked up. */
async function tokenOf(
  { token, tokenTtlMs }: Recipe,
  { context, warn }: Sources,
): Promise<TokenSettings> {
  if (token.kind === 'auto') return { kind: 'auto', ttlMs: tokenTtlMs };
  const { adapters } = context;
  const { value, warnings } = await adapters.readSecret(token.source);
  for (const warning of warnings) warn(warning);
  if (value.includes('::server:')) {
    warn(
      'the join token is a server token: whoever reads a seed could add a server; use an agent token',
    );
  }
  return { kind: 'static', read: async () => (await adapters.readSecret(token.source)).value };
}

async function optionalText(
  path: string | undefined,
  { context }: Sources,
): Promise<string | undefined> {
  if (path === undefined) return undefined;
  const text = await context.files.read(path).catch((cause: unknown) => {
    throw new InvalidConfig('CONFIG_UNREADABLE', `${path} cannot be read`, { cause });
  });
  if (text === undefined) throw new InvalidConfig('CONFIG_UNREADABLE', `${path} does not exist`);
  return text;
}

function requireServer({ server }: Sources): string {
  if (server !== undefined) return server;
  throw new InvalidConfig(
    'CONFIG_INVALID',
    'join.kubeadm.server is not set, and there is no kubeconfig that names the API server',
  );
}
