// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { JournalEntry, JournalKind } from '../model/journal-entry.ts';
import { MemoryStore } from '../ports/fakes/memory-store.ts';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import type { Log } from '../ports/log.ts';
import { withJournalTelemetry } from './journal-telemetry.ts';

const ignore = () => undefined;

async function levelOf(kind: JournalKind, reason: string): Promise<string | undefined> {
  let logged: string | undefined;
  const at = (level: string) => () => {
    logged = level;
  };
  const log: Log = {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    with: () => log,
  };
  const store = withJournalTelemetry(new MemoryStore({ clock: new VirtualClock() }), {
    log,
    meters: { add: ignore, observe: ignore, set: ignore },
  });
  await store.journal.append({ at: 0, kind, subject: {}, reason, message: 'text' });
  return logged;
}

describe('withJournalTelemetry', () => {
  it.each([
    ['saw', 'RegionRefused', 'error'],
    ['saw', 'LostMachinesHeld', 'error'],
    ['failed', 'PERMISSION_MISSING', 'error'],
    ['failed', 'CONFIG_INVALID', 'error'],
    ['saw', 'ViewStale', 'warn'],
    ['saw', 'MachineLost', 'warn'],
    ['saw', 'DrainBlocked', 'warn'],
    ['did', 'DrainForced', 'warn'],
    ['refused', 'DrainUndone', 'warn'],
    ['did', 'DrainCompleted', 'info'],
    ['refused', 'NO_HOST_FITS', 'warn'],
    ['failed', 'TASK_FAILED', 'warn'],
    ['refused', 'HOSTS_BUSY', 'info'],
    ['saw', 'ViewRecovered', 'info'],
    ['did', 'MachineReady', 'info'],
  ] as const)('logs %s %s as %s', async (kind, reason, level) => {
    expect(await levelOf(kind, reason)).toBe(level);
  });

  it.each([
    ['DrainCompleted', 'completed'],
    ['DrainForced', 'forced'],
    ['DrainTimedOut', 'timed_out'],
    ['DrainCancelled', 'cancelled'],
    ['DrainUndone', 'undone'],
  ])('counts %s as a drain with outcome %s, and its duration', async (reason, outcome) => {
    const counted: unknown[] = [];
    const count = (...args: unknown[]) => void counted.push(args);
    const log: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore, with: () => log };
    const store = withJournalTelemetry(new MemoryStore({ clock: new VirtualClock() }), {
      log,
      meters: { add: count, observe: count, set: ignore },
    });
    const subject = { pool: 'workers' };
    const entry = { at: 0, kind: 'did', subject, message: 'text' } as const;
    await store.journal.append({ ...entry, reason, numbers: { seconds: 12 } });
    const labels = { pool: 'workers', outcome };
    expect(counted).toContainEqual(['pvescaler_drains_total', labels]);
    expect(counted).toContainEqual(['pvescaler_drain_duration_seconds', labels, 12]);
    counted.length = 0;
    await store.journal.append({ ...entry, reason: 'DrainStarted' });
    expect(counted).toHaveLength(1);
  });

  async function countedOf(entry: Omit<JournalEntry, 'at' | 'message'>): Promise<unknown[]> {
    const counted: unknown[] = [];
    const count = (...args: unknown[]) => void counted.push(args);
    const log: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore, with: () => log };
    const store = withJournalTelemetry(new MemoryStore({ clock: new VirtualClock() }), {
      log,
      meters: { add: count, observe: count, set: ignore },
    });
    await store.journal.append({ at: 0, message: 'text', ...entry });
    return counted.slice(1);
  }

  it('observes how long a machine that became ready was in each phase', async () => {
    const subject = { pool: 'workers' };
    const numbers = { vmId: 7, seconds: 42, bootingSeconds: 30.5, readySeconds: 1 };
    expect(await countedOf({ kind: 'did', reason: 'MachineReady', subject, numbers })).toEqual([
      ['pvescaler_provisioning_duration_seconds', { pool: 'workers' }, 42],
      [
        'pvescaler_provisioning_phase_duration_seconds',
        { pool: 'workers', phase: 'booting' },
        30.5,
      ],
    ]);
  });

  it('counts failed machines by pool, phase and reason, and no other failure', async () => {
    const failed = { kind: 'failed', subject: { pool: 'workers' }, reason: 'TASK_FAILED' } as const;
    expect(await countedOf({ ...failed, numbers: { phase: 'creating' } })).toEqual([
      [
        'pvescaler_machine_failures_total',
        { pool: 'workers', phase: 'creating', reason: 'TASK_FAILED' },
      ],
    ]);
    expect(await countedOf(failed)).toEqual([]);
  });
});
