// SPDX-License-Identifier: Apache-2.0
// Which entries of the journal become Events: what went wrong, and what a person who looks at a Node wants to know.
import type { JournalEntry } from '../../model/journal-entry.ts';
import type { ClusterEvent } from '../../ports/cluster.ts';

const WORTH_TELLING = new Set([
  'MachineReady',
  'MachineLost',
  'NodeDiffers',
  'OrphanedNodeRemoved',
]);

export interface EventPlaces {
  /** Where Events go that are about no Node. */
  readonly namespace: string;
  readonly nodeUid: string | undefined;
}

export function eventOf(
  { kind, subject, reason, message }: JournalEntry,
  { namespace, nodeUid }: EventPlaces,
): ClusterEvent | undefined {
  const isTrouble = kind === 'failed' || kind === 'refused';
  if (!isTrouble && !WORTH_TELLING.has(reason)) return undefined;
  const { node } = subject;
  return {
    about:
      node !== undefined && nodeUid !== undefined
        ? { kind: 'Node', name: node, uid: nodeUid }
        : { kind: 'Namespace', name: namespace },
    type: isTrouble || reason === 'MachineLost' || reason === 'NodeDiffers' ? 'Warning' : 'Normal',
    reason: camel(reason),
    message,
  };
}

/** Reasons of trouble are error codes; an Event's reason is one word in CamelCase. */
function camel(reason: string): string {
  if (!/^[A-Z]+(_[A-Z]+)*$/.test(reason)) return reason;
  return reason
    .toLowerCase()
    .replace(/(^|_)([a-z])/g, (_match, _gap: string, letter: string) => letter.toUpperCase());
}
