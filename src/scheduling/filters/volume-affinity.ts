// SPDX-License-Identifier: Apache-2.0
// Which nodes can reach a volume.

import type { CsiNode } from '../../model/csi.ts';
import { csiMigrationOf, inTreePluginName } from '../../model/in-tree-disk.ts';
import type { Labels } from '../../model/labels.ts';
import type { Node } from '../../model/node.ts';
import {
  matchesNode,
  type NodeSelector,
  type NodeSelectorTerm,
} from '../../model/node-selector.ts';
import type { PersistentVolume } from '../../model/persistent-volume.ts';
import type { Requirement } from '../../model/requirement.ts';

const ZONE = 'topology.kubernetes.io/zone';
const BETA_ZONE = 'failure-domain.beta.kubernetes.io/zone';
const REGION = 'topology.kubernetes.io/region';
const BETA_REGION = 'failure-domain.beta.kubernetes.io/region';
const SEPARATOR = '__';

export function canReachVolume(node: Node, affinity: NodeSelector | undefined): boolean {
  // As in the scheduler, a volume's affinity matches labels only, so the node's name is left empty.
  return affinity === undefined || matchesNode(affinity, { name: '', labels: node.labels });
}

/**
 * The volume's node affinity, translated to the CSI driver's labels if the in-tree plugin was migrated on this
 * node.
 */
export function effectiveAffinity(
  volume: PersistentVolume,
  csiNode: CsiNode | undefined,
): NodeSelector | undefined {
  const { disk, nodeAffinity } = volume;
  if (disk === undefined || csiNode?.migratedPlugins.has(inTreePluginName(disk.kind)) !== true) {
    return nodeAffinity;
  }
  const zoneKey = csiMigrationOf(disk.kind)?.zoneKey;
  return zoneKey === undefined ? nodeAffinity : translateZoneLabels(volume, zoneKey);
}

function translateZoneLabels(volume: PersistentVolume, zoneKey: string): NodeSelector | undefined {
  const terms = volume.nodeAffinity?.terms ?? [];
  const isOld = usesOldLabels(terms, volume.labels);
  const zone = isOld ? BETA_ZONE : ZONE;
  const moved = isOld ? renameKey(terms, BETA_REGION, REGION) : terms;
  if (hasValues(terms, zone)) return { terms: renameKey(moved, zone, zoneKey), problems: [] };
  const zones = (volume.labels[zone] ?? '')
    .split(SEPARATOR)
    .map((one) => one.trim())
    .filter((one) => one !== '');
  if (zones.length === 0) return volume.nodeAffinity && { terms: moved, problems: [] };
  return {
    terms: withRequirement(moved, { key: zoneKey, operator: 'In', values: zones }),
    problems: [],
  };
}

function usesOldLabels(terms: readonly NodeSelectorTerm[], labels: Labels): boolean {
  if (mentions(terms, ZONE)) return false;
  if (mentions(terms, BETA_ZONE)) return true;
  return !Object.hasOwn(labels, ZONE) && Object.hasOwn(labels, BETA_ZONE);
}

function mentions(terms: readonly NodeSelectorTerm[], key: string): boolean {
  return terms.some((term) => term.requirements.some((one) => one.key === key));
}

function hasValues(terms: readonly NodeSelectorTerm[], key: string): boolean {
  return terms.some((term) =>
    term.requirements.some((one) => one.key === key && one.values.length > 0),
  );
}

function renameKey(
  terms: readonly NodeSelectorTerm[],
  from: string,
  to: string,
): readonly NodeSelectorTerm[] {
  return terms.map((term) => ({
    ...term,
    requirements: term.requirements.map((one) => (one.key === from ? { ...one, key: to } : one)),
  }));
}

function withRequirement(
  terms: readonly NodeSelectorTerm[],
  added: Requirement,
): readonly NodeSelectorTerm[] {
  if (terms.length === 0) return [{ requirements: [added], fields: [] }];
  return terms.map((term) => ({ ...term, requirements: [...term.requirements, added] }));
}
