// SPDX-License-Identifier: Apache-2.0
// The content of a machine's seed ISO.

import {
  buildSeedIso,
  type FamilyInput,
  type JoinInput,
  type RenderedSeed,
  renderSeed,
  toSeedFiles,
} from '../../bootstrap/index.ts';
import { BOOTSTRAP_GROUPS } from '../../model/bootstrap-groups.ts';
import { SELFTEST_TAINT } from '../../model/selftest.ts';
import type { FamilyRule } from '../../placement/index.ts';
import type { Cluster } from '../../ports/cluster.ts';
import { InvalidConfig } from '../../ports/errors.ts';
import type { JoinSettings, TokenSettings } from '../context/join-settings.ts';
import { isMachineError } from '../context/machine-error.ts';
import type { MachineReconcile } from '../context/machine-reconcile.ts';
import type { NetworkSettings, PoolSettings, SeedSettings } from '../context/settings.ts';
import { machineInput } from '../nodes/registration.ts';
import { kubeadmCaHashes, rancherCaHash } from './ca-hash.ts';
import { macOf } from './vm-identity.ts';

interface SeedParts {
  readonly seed: SeedSettings;
  readonly network: NetworkSettings;
}

/** The same bytes each time except for the join token, so that a second upload replaces the first. */
export function seedBytes(
  reconcile: MachineReconcile,
  parts: SeedParts,
  join: JoinInput,
): Uint8Array {
  return buildSeedIso(
    toSeedFiles(renderedSeed(reconcile, parts, join)),
    reconcile.machine.requestedAt,
  );
}

export function renderedSeed(
  reconcile: MachineReconcile,
  { seed, network }: SeedParts,
  join: JoinInput,
): RenderedSeed {
  const { id } = reconcile.machine;
  const { name, addresses } = reconcile.placement;
  const rendered = renderSeed({
    machine: machineInput(reconcile),
    pool: reconcile.machine.isSelftest === true ? forSelftest(seed) : seed.registration,
    login: seed.login,
    network: {
      interfaces: network.interfaces.map((card, index) => ({
        mac: macOf(id, index, card.macPrefix),
        mtu: card.mtu,
        // Static addresses are for the first interface; the others use DHCP.
        v4: index === 0 ? familyOf(network.v4, addresses, 4) : { kind: 'dhcp' },
        v6: index === 0 ? familyOf(network.v6, addresses, 6) : { kind: 'auto' },
        routes: [],
      })),
      dns: network.dns,
      search: network.search,
    },
    preinstalled: seed.preinstalled,
    join,
    template: seed.template,
  });
  if (rendered.ok) return rendered.value;
  throw new InvalidConfig(
    'CONFIG_INVALID',
    `cannot render the seed of ${name}: ${rendered.problem}`,
  );
}

function forSelftest({ registration }: SeedSettings): SeedSettings['registration'] {
  return { ...registration, taints: [...registration.taints, SELFTEST_TAINT] };
}

function familyOf(rule: FamilyRule, addresses: readonly string[], family: 4 | 6): FamilyInput {
  if (rule.kind !== 'static') return { kind: rule.kind };
  const own = addresses.filter((address) => address.includes(':') === (family === 6));
  return { kind: 'static', addresses: own, gateway: rule.gateway };
}

// The join data of one machine with its secret. A bootstrap token is created just before it is sent, for one machine, and
// kept in memory only: after a crash another one is created. All are deleted when the machine is ready or gone.

type Joining = Exclude<JoinSettings, { readonly kind: 'none' }>;
type AutoToken = Extract<TokenSettings, { readonly kind: 'auto' }>;

/** Placeholder in documents that contain no token. */
const NO_TOKEN = 'none00.0000000000000000';

/** For the seed. A join through the guest agent keeps its secrets out of the seed. */
export function resolveSeedJoin(
  reconcile: MachineReconcile,
  join: JoinSettings,
): Promise<JoinInput> {
  if (join.kind === 'none') return Promise.resolve(join);
  return join.via === 'agent'
    ? withToken(reconcile, join, NO_TOKEN)
    : resolveAgentJoin(reconcile, join);
}

export async function resolveAgentJoin(
  reconcile: MachineReconcile,
  join: JoinSettings,
): Promise<JoinInput> {
  return join.kind === 'none' ? join : withToken(reconcile, join, await tokenOf(reconcile, join));
}

async function withToken(
  reconcile: MachineReconcile,
  join: Joining,
  token: string,
): Promise<JoinInput> {
  if (join.kind !== 'kubeadm') return { ...join, token };
  const { caCertHashes } = join;
  return {
    ...join,
    token,
    caCertHashes: caCertHashes.length > 0 ? caCertHashes : kubeadmCaHashes(await caOf(reconcile)),
  };
}

async function tokenOf(reconcile: MachineReconcile, join: Joining): Promise<string> {
  if (join.token.kind === 'static') return join.token.read();
  const token = await createOrReuseToken(reconcile, join, lifetimeOf(reconcile, join.token));
  if (join.kind !== 'k3s' && join.kind !== 'rke2') return token;
  return `K10${rancherCaHash(await caOf(reconcile), reconcile.context.now)}::${token}`;
}

const MIN_LIFETIME_MS = 5 * 60_000;

/** Twice the time that the machine has to become ready, of which time without a driver or cluster does not count. */
function lifetimeOf({ pool }: MachineReconcile, { ttlMs }: AutoToken): number {
  const timeoutMs = pool?.provisionTimeoutMs ?? Number.POSITIVE_INFINITY;
  return Math.min(ttlMs, Math.max(2 * timeoutMs, MIN_LIFETIME_MS));
}

/**
 * Called before the machine is recorded as ready or gone: after a crash in between it is called again. An error is ignored,
 * because the tokens expire soon.
 */
export async function deleteJoinTokens(reconcile: MachineReconcile): Promise<void> {
  const { context, id, pool } = reconcile;
  context.state.tokens.delete(id);
  if (context.cluster === undefined || (pool !== undefined && !hasOwnTokens(pool))) return;
  await context.cluster.deleteBootstrapTokens(id, context.writeOptions()).catch((error) => {
    if (!isMachineError(error)) throw error;
  });
}

function hasOwnTokens({ seed }: PoolSettings): boolean {
  const join = seed?.join;
  return join !== undefined && join.kind !== 'none' && join.token.kind === 'auto';
}

/** A token with more than half of its lifetime left is used for a second attempt. */
async function createOrReuseToken(
  reconcile: MachineReconcile,
  { kind }: Joining,
  ttlMs: number,
): Promise<string> {
  const { tokens } = reconcile.context.state;
  const existing = tokens.get(reconcile.id);
  if (existing !== undefined && existing.expiresAt - reconcile.context.now > ttlMs / 2)
    return existing.token;
  const created = await clusterOf(reconcile).createBootstrapToken(
    {
      machine: reconcile.id,
      description: `pvescaler: ${reconcile.placement.name}`,
      lifetimeMs: ttlMs,
      groups: [BOOTSTRAP_GROUPS[kind === 'custom' ? 'kubeadm' : kind]],
      usages: kind === 'kubeadm' ? ['authentication', 'signing'] : ['authentication'],
    },
    reconcile.context.writeOptions(),
  );
  tokens.set(reconcile.id, created);
  return created.token;
}

async function caOf(reconcile: MachineReconcile): Promise<string> {
  return clusterOf(reconcile).serverCa(reconcile.context.readOptions);
}

function clusterOf(reconcile: MachineReconcile): Cluster {
  const { cluster } = reconcile.context;
  if (cluster !== undefined) return cluster;
  throw new InvalidConfig(
    'CONFIG_INVALID',
    `pool ${reconcile.machine.pool} joins its machines to a cluster, but no cluster is configured`,
    { hint: 'Name a kubeconfig by cluster.kubeconfig or --kubeconfig, or set join: none.' },
  );
}
