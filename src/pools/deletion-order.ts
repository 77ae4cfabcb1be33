// SPDX-License-Identifier: Apache-2.0
// Which machines of a pool are removed first when a request names a number instead of machines.
import { type MachineId, PHASES } from '../model/machine.ts';
import type { Member } from './limits.ts';

/** What is known of a machine beside its record. Absent: unknown, which is no reason to remove it. */
export interface MemberHealth {
  /** Its VM is not in the view of its region. */
  readonly isVmMissing?: boolean | undefined;
  readonly isHostDown?: boolean | undefined;
  /** False also when the Node of a machine that had one does not exist. */
  readonly isNodeReady?: boolean | undefined;
}

/**
 * The machine whose removal costs least first: failed or without a place, then on a host that is down, then with a Node
 * that is not Ready, then not ready yet (the least progress first), then the youngest.
 */
export function sortForDeletion(
  members: readonly Member[],
  healthOf: (id: MachineId) => MemberHealth = () => ({}),
): readonly Member[] {
  const keyed = members.map((member) => ({ member, key: costOf(member, healthOf(member.id)) }));
  return keyed
    .toSorted(
      ({ member: a, key: left }, { member: b, key: right }) =>
        left.rank - right.rank ||
        left.progress - right.progress ||
        b.requestedAt - a.requestedAt ||
        (a.id < b.id ? -1 : 1),
    )
    .map(({ member }) => member);
}

interface Cost {
  readonly rank: number;
  readonly progress: number;
}

const READY = PHASES.indexOf('ready');

function costOf({ phase }: Member, { isHostDown, isNodeReady }: MemberHealth): Cost {
  if (phase === undefined) return { rank: 0, progress: -1 };
  if (phase === 'requested' || phase === 'failed' || phase === 'kept')
    return { rank: 0, progress: 0 };
  const progress = PHASES.indexOf(phase);
  if (isHostDown === true) return { rank: 1, progress };
  if (progress < READY) return { rank: 3, progress };
  return { rank: isNodeReady === false ? 2 : 4, progress: 0 };
}
