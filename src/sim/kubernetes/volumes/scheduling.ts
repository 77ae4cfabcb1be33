// SPDX-License-Identifier: Apache-2.0
// Claims of pods while they are scheduled: unbound claims hold a pod back, bound volumes restrict its nodes, and claims
// that wait for their first consumer are provisioned for the chosen node.
import type { Node } from '../../../model/node.ts';
import {
  matchesNode,
  type NodeSelectorTermSource,
  readNodeSelector,
} from '../../../model/node-selector.ts';
import type { Pod } from '../../../model/pod.ts';
import type { ControllerContext } from '../controllers/controller.ts';
import {
  listField,
  objectField,
  type SimObject,
  specOf,
  statusOf,
  textField,
} from '../storage/objects.ts';
import { CLAIMS, VOLUMES } from '../storage/resources.ts';
import { bindOrProvision } from './binding.ts';
import { claimNames, waitsForConsumer } from './claims.ts';

export interface VolumeRules {
  /** Holds the pod back on every node. */
  readonly problem: string | undefined;
  readonly filter: (node: Node) => string | undefined;
}

const NO_RULES: VolumeRules = { problem: undefined, filter: () => undefined };

export function findVolumeRules(cluster: ControllerContext, pod: Pod): VolumeRules {
  const names = claimNames(pod);
  if (names.length === 0) return NO_RULES;
  const claims = names.map((name) => ({ name, claim: cluster.find(CLAIMS, pod.namespace, name) }));
  const missing = claims.find(({ claim }) => claim === undefined);
  if (missing !== undefined) {
    return { ...NO_RULES, problem: `persistentvolumeclaim "${missing.name}" not found` };
  }
  const found = claims.flatMap(({ claim }) => claim ?? []);
  if (found.some((claim) => !isBound(claim) && !waitsForConsumer(cluster, claim))) {
    return { ...NO_RULES, problem: 'pod has unbound immediate PersistentVolumeClaims' };
  }
  const volumes = found.flatMap(
    (claim) => cluster.find(VOLUMES, '', textField(specOf(claim), 'volumeName')) ?? [],
  );
  return {
    problem: undefined,
    filter: (node) =>
      volumes.every((volume) => isReachable(volume, node))
        ? undefined
        : 'node(s) had volume node affinity conflict',
  };
}

function isBound(claim: SimObject): boolean {
  return textField(statusOf(claim), 'phase') === 'Bound';
}

function isReachable(volume: SimObject, node: Node): boolean {
  const required = objectField(objectField(specOf(volume), 'nodeAffinity'), 'required');
  const terms = listField(required, 'nodeSelectorTerms');
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- terms of the API; the model checks their values
  const sources = terms as unknown as readonly NodeSelectorTermSource[];
  return terms.length === 0 || matchesNode(readNodeSelector(sources), node);
}

/** Binds the claims of the pod that wait for their first consumer. */
export function provisionOnNode(cluster: ControllerContext, pod: Pod, nodeName: string): void {
  for (const name of claimNames(pod)) {
    const claim = cluster.find(CLAIMS, pod.namespace, name);
    if (claim !== undefined && !isBound(claim)) bindOrProvision(cluster, claim, nodeName);
  }
}
