// SPDX-License-Identifier: Apache-2.0
// Access to Kubernetes: the API server, every right of the account, provider ids of existing Nodes.
import type { Config } from '../config/index.ts';
import { formatCount } from '../model/format-text.ts';
import { readProviderId } from '../model/provider-id.ts';
import type { AccessRight, ClusterInspector, InspectedNode } from '../ports/inspection.ts';
import { describeStore } from '../setup/index.ts';
import { type Check, failure, failureOf, type Outcome, ok, skipped, warning } from './check.ts';
import { describeOutdated } from './definitions.ts';
import { unique } from './region-reader.ts';

export const KUBERNETES_GROUP = 'Kubernetes';

export function apiServerCheck(inspector: Promise<ClusterInspector | undefined>): Check {
  return {
    name: 'api-server',
    group: KUBERNETES_GROUP,
    run: async (signal) => {
      const found = await inspector;
      if (found === undefined) {
        return failure(
          'there is no access to Kubernetes',
          'Set cluster.kubeconfig, or run pvescaler in a pod of the cluster.',
        );
      }
      return ok(`${await found.version({ signal })} at ${found.server}`);
    },
  };
}

export function rightChecks(inspector: ClusterInspector, config: Config): readonly Check[] {
  const { kubernetes } = config.state;
  const rights = inspector.rights
    .filter((right) => isNeeded(right, config))
    .map((right) =>
      right.isForState && kubernetes !== undefined
        ? { ...right, namespace: kubernetes.namespace }
        : right,
    );
  const names = unique(rights.map(({ resource }) => resource));
  return names.map((resource) => ({
    name: 'kubernetes-rights',
    group: KUBERNETES_GROUP,
    subject: resource,
    run: (signal) =>
      judgeRights(
        inspector,
        rights.filter((right) => right.resource === resource),
        signal,
      ),
  }));
}

export const GROUP_VERSION = 'pvescaler.dev/v1alpha1';
const INSTALL_KINDS = `Install the CustomResourceDefinitions of this release:
kubectl apply -f deploy/crds`;

/** Records in the cluster need their kinds; a database must not be one of several. */
export function stateCheck(inspector: ClusterInspector, config: Config): Check {
  return {
    name: 'state',
    group: KUBERNETES_GROUP,
    run: async (signal) => {
      if (config.state.kubernetes === undefined) return judgeReplicas(inspector, config, signal);
      const kinds = await Promise.all(
        inspector.recordKinds.map(async ({ kind, schema }) => ({
          kind,
          schema,
          served: await inspector.schema(GROUP_VERSION, kind, { signal }),
        })),
      );
      const missing = kinds.filter(({ served }) => served === undefined).map(({ kind }) => kind);
      if (missing.length > 0)
        return failure(
          `the API server does not know ${missing.join(', ')} of ${GROUP_VERSION}`,
          INSTALL_KINDS,
        );
      const outdated = kinds.flatMap(
        ({ kind, schema, served }) => describeOutdated(kind, schema, served) ?? [],
      );
      if (outdated.length > 0) return failure(outdated.join('; '), INSTALL_KINDS);
      return ok(`records in ${describeStore(config.state)}`);
    },
  };
}

async function judgeReplicas(
  inspector: ClusterInspector,
  { cluster }: Config,
  signal: AbortSignal,
): Promise<Outcome> {
  const containers = await inspector.containers('pvescaler', { signal });
  const servers = containers.filter(
    ({ namespace, command }) => namespace === cluster.namespace && command.includes('serve'),
  );
  if (servers.length < 2) return ok('one database');
  return warning(
    `${servers.map(({ pod }) => pod).join(' and ')} run in namespace ${cluster.namespace}, each with a database of its own: only one acts, and requests to the others are not carried out`,
    'Set replicas to 1, or keep the records in the cluster: docs/guides/in-cluster.md, "Several replicas".',
  );
}

/** With static tokens for all pools, no Secret is created. */
function isNeeded({ resource, name, isForState }: AccessRight, config: Config): boolean {
  const { cluster, join, pools, state } = config;
  if (isForState) return state.kubernetes !== undefined;
  if (resource.startsWith('proxmoxpools/') || resource === 'proxmoxpools')
    return cluster.poolObjects;
  if (resource !== 'secrets' && name !== 'kube-root-ca.crt') return true;
  return pools.some((pool) => pool.join !== 'none' && join[pool.join]?.token.kind === 'auto');
}

async function judgeRights(
  inspector: ClusterInspector,
  rights: readonly AccessRight[],
  signal: AbortSignal,
): Promise<Outcome> {
  const reviewed = await Promise.all(
    rights.map(async (right) => ({ right, allowed: await inspector.isAllowed(right, { signal }) })),
  );
  const missing = reviewed.filter(({ allowed }) => !allowed).map(({ right }) => right);
  const [first] = missing;
  if (first === undefined) return ok(unique(rights.map(({ verb }) => verb)).join(', '));
  const judged = missing.every(({ isOptional }) => isOptional) ? warning : failure;
  return judged(
    `may not ${missing.map(describe).join(', ')} (needed ${first.why})`,
    first.isForState
      ? 'Apply deploy/kubernetes-state/role.yaml, or grant the right; docs/reference/rights.md lists all.'
      : 'Apply deploy/manifests/rbac.yaml, or grant the right; docs/reference/rights.md lists all.',
  );
}

function describe({ verb, group, resource, name, namespace }: AccessRight): string {
  const full = group === '' ? resource : `${resource}.${group}`;
  const where = namespace === undefined ? '' : ` in namespace ${namespace}`;
  return `${verb} ${full}${name === undefined ? '' : `/${name}`}${where}`;
}

export function providerIdCheck(inspector: ClusterInspector, config: Config): Check {
  return {
    name: 'provider-ids',
    group: KUBERNETES_GROUP,
    run: async (signal) => {
      const nodes = await inspector.nodes({ signal }).catch(failureOf);
      return 'status' in nodes ? nodes : judgeProviderIds(nodes, config);
    },
  };
}

function judgeProviderIds(nodes: readonly InspectedNode[], config: Config): Outcome {
  const twice = nodes.filter(({ providerId }, at) => {
    const first = nodes.findIndex((node) => node.providerId === providerId);
    return providerId !== '' && first !== at;
  });
  if (twice.length > 0) {
    return failure(
      twice.map(({ name, providerId }) => `${name} has ${providerId}, as another Node`).join('; '),
      'Delete the Node of the machine that no longer exists: kubectl delete node NAME',
    );
  }
  const foreign = nodes.filter((node) => isOfPool(node, config) && !isOurFormat(node, config));
  if (foreign.length > 0) {
    const list = foreign.map(({ name, providerId }) => `${name} (${providerId || 'none'})`);
    return failure(
      `Nodes of pools without a provider id proxmox://REGION/ID of a configured region: ${list.join(', ')}`,
      'Run only one cloud controller, and see "the provider id" in docs/guides/joining.md; recreate these machines.',
    );
  }
  const own = nodes.filter((node) => isOfPool(node, config)).length;
  return ok(`${formatCount(nodes.length, 'Node')}, ${own} of pools`);
}

function isOfPool({ labels }: InspectedNode, { pools }: Config): boolean {
  return pools.some(({ name, groupLabel }) => labels[groupLabel] === name);
}

function isOurFormat({ providerId }: InspectedNode, { regions }: Config): boolean {
  const parsed = readProviderId(providerId);
  if (parsed.kind === 'vm') return regions[parsed.region] !== undefined;
  // k3s and RKE2 set these unless told otherwise; the Node is then found by its name.
  return parsed.kind === 'node-name' || parsed.kind === 'smbios';
}

export function skippedWithoutCluster(names: readonly Check['name'][]): readonly Check[] {
  return names.map((name) => ({
    name,
    group: KUBERNETES_GROUP,
    run: () => Promise.resolve(skipped('the API server cannot be read')),
  }));
}
