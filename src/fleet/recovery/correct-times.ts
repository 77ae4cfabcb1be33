// SPDX-License-Identifier: Apache-2.0
// Corrects records that were written while the wall clock was ahead, once the clock has been set back.
import type { MachineId } from '../../model/machine.ts';
import { limitBackoff } from '../capacity/backoff.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import { correctedTime, withCorrectedTimes } from '../records/future-times.ts';

interface Queue {
  /** False, and nothing done, while the machine is being reconciled. */
  runExclusive(id: string, work: () => Promise<void>): Promise<boolean>;
}

export async function correctFutureTimes(context: ReconcileContext, queue: Queue): Promise<void> {
  const machines = await correctMachines(context, queue);
  const intents = await correctIntents(context);
  for (const pool of Object.keys(context.settings.pools)) await limitBackoff(context, pool);
  const records = machines + intents;
  if (records === 0) return;
  await context.record({
    kind: 'saw',
    subject: {},
    reason: 'ClockSetBack',
    message: `${records} records have times in the future, so the clock was ahead when they were written; they count from now`,
    numbers: { records },
  });
}

async function correctMachines(context: ReconcileContext, queue: Queue): Promise<number> {
  const { records, now } = context;
  const affected = records.machines.filter(
    (machine) => withCorrectedTimes(machine, now) !== machine,
  );
  const correct = async (id: MachineId) => {
    const machine = records.find(id);
    if (machine !== undefined) await records.putMachine(withCorrectedTimes(machine, now));
  };
  let count = 0;
  // A machine that is being reconciled now is corrected in a later pass.
  for (const { id } of affected) if (await queue.runExclusive(id, () => correct(id))) count += 1;
  return count;
}

/** Open intents are applied in the order of their times, which must not change. */
async function correctIntents({ records, now }: ReconcileContext): Promise<number> {
  const affected = records.intents.filter(
    ({ state, requestedAt }) => state === 'done' && correctedTime(requestedAt, now) !== requestedAt,
  );
  for (const intent of affected) await records.putIntent({ ...intent, requestedAt: now });
  return affected.length;
}
