// SPDX-License-Identifier: Apache-2.0
// Valid records for tests, which override only the fields that matter to them.
import type { Drain } from '../../model/drain.ts';
import type { CreateIntent } from '../../model/intent.ts';
import type { JournalEntry } from '../../model/journal-entry.ts';
import { type Machine, type MachineId, parseMachineId } from '../../model/machine.ts';

import type { PoolState } from '../../model/pool.ts';
import { Bug } from '../errors.ts';

const GIBIBYTE = 1024 ** 3;
const SIZE = { cpu: 2, memoryBytes: 4 * GIBIBYTE, diskBytes: 20 * GIBIBYTE };

/** Machine ids that differ only in their last digits. */
export function aMachineId(n = 1): MachineId {
  const id = parseMachineId(`00000000-0000-4000-8000-${n.toString(16).padStart(12, '0')}`);
  if (!id.ok) throw new Bug('BUG', `${n} does not give a valid machine id`);
  return id.value;
}

export function aMachine(overrides: Partial<Machine> = {}): Machine {
  return {
    id: aMachineId(),
    pool: 'workers',
    phase: 'requested',
    phaseSince: 1_000,
    requestedAt: 1_000,
    size: SIZE,
    attempts: 0,
    ...overrides,
  };
}

export function anIntent(overrides: Partial<CreateIntent> = {}): CreateIntent {
  return {
    id: 'intent-1',
    kind: 'create',
    pool: 'workers',
    requestedAt: 1_000,
    requestedBy: 'cli',
    reason: 'requested by a test',
    state: 'open',
    machines: [aMachineId()],
    size: SIZE,
    ...overrides,
  };
}

export function aDrain(overrides: Partial<Drain> = {}): Drain {
  return {
    machine: aMachineId(),
    nodeName: 'workers-00000000',
    nodeUid: 'b7e0c1de-0000-4000-8000-000000000001',
    state: 'wanted',
    stateSince: 1_000,
    intent: 'intent-1',
    requestedBy: 'cli',
    reason: 'the node is idle',
    requestedAt: 1_000,
    timeoutMs: 600_000,
    isCordonedByDrain: false,
    blockedBy: [],
    ...overrides,
  };
}

export function aPoolState(overrides: Partial<PoolState> = {}): PoolState {
  return { pool: 'workers', allocatable: {}, ...overrides };
}

export function aJournalEntry(overrides: Partial<JournalEntry> = {}): JournalEntry {
  return {
    at: 1_000,
    kind: 'did',
    subject: { pool: 'workers' },
    reason: 'ScaledUp',
    message: 'requested one machine',
    ...overrides,
  };
}
