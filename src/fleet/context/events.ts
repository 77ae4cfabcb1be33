// SPDX-License-Identifier: Apache-2.0
// Which journal entries become Kubernetes Events: errors, refusals, and what a person who inspects a Node needs.
import type { JournalEntry } from '../../model/journal-entry.ts';
import type { ClusterEvent } from '../../ports/cluster.ts';

const EMITTED_REASONS = new Set([
  'MachineReady',
  'MachineLost',
  'NodeDiffers',
  'OrphanedNodeRemoved',
]);

export interface EventTarget {
  /** Namespace of Events that are not about a Node. */
  readonly namespace: string;
  readonly nodeUid: string | undefined;
}

export function eventOf(
  { kind, subject, reason, message }: JournalEntry,
  { namespace, nodeUid }: EventTarget,
): ClusterEvent | undefined {
  const isProblem = kind === 'failed' || kind === 'refused';
  if (!isProblem && !EMITTED_REASONS.has(reason)) return undefined;
  const { node } = subject;
  return {
    regarding:
      node !== undefined && nodeUid !== undefined
        ? { kind: 'Node', name: node, uid: nodeUid }
        : { kind: 'Namespace', name: namespace },
    type: isProblem || reason === 'MachineLost' || reason === 'NodeDiffers' ? 'Warning' : 'Normal',
    reason: toCamelCase(reason),
    message,
  };
}

/** An entry's reason may be an error code; an Event's reason is one word in CamelCase. */
function toCamelCase(reason: string): string {
  if (!/^[A-Z]+(_[A-Z]+)*$/.test(reason)) return reason;
  return reason
    .toLowerCase()
    .replace(/(^|_)([a-z])/g, (_match, _gap: string, letter: string) => letter.toUpperCase());
}
