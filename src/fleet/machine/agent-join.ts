// SPDX-License-Identifier: Apache-2.0
// Joins through the guest agent: waits for the system, writes files through standard input, starts the join. Runs once
// per process and machine; running it again after a crash writes the same files with another token.
import type { AgentStep, JoinInput } from '../../bootstrap/index.ts';
import { TaskFailed } from '../../ports/errors.ts';
import type { GuestCommand } from '../../ports/hypervisor.ts';
import type { MachineReconcile } from '../context/machine-reconcile.ts';
import type { PoolSettings, SeedSettings } from '../context/settings.ts';
import { lookUpOwnVm } from './own-vm.ts';
import { renderedSeed, resolveAgentJoin, resolveSeedJoin } from './seed.ts';

const STEP_TIMEOUT_MS = 20_000;

type Seeded = PoolSettings & { readonly seed: SeedSettings };

/** Does nothing for pools that join from user-data, and until the guest has started far enough. */
export async function joinByAgent(reconcile: MachineReconcile): Promise<void> {
  const { pool, context } = reconcile;
  if (!isSeeded(pool) || context.state.joinedByAgent.has(reconcile.id)) return;
  const { join } = pool.seed;
  if (join.kind === 'none' || join.via !== 'agent') return;
  // Check the guest before a token is created for it.
  const [first] = stepsOf(reconcile, pool, await resolveSeedJoin(reconcile, join));
  if (first?.kind === 'wait' && !(await isGuestReady(reconcile, first))) return;
  for (const step of stepsOf(reconcile, pool, await resolveAgentJoin(reconcile, join)))
    await run(reconcile, step);
  context.state.joinedByAgent.add(reconcile.id);
  context.state.tokens.delete(reconcile.id);
  const message = `started the join of ${reconcile.placement.name} through its guest agent`;
  await reconcile.record({ kind: 'did', reason: 'JoinStarted', message });
}

function isSeeded(pool: PoolSettings | undefined): pool is Seeded {
  return pool?.seed !== undefined;
}

function stepsOf(
  reconcile: MachineReconcile,
  { seed, network }: Seeded,
  join: JoinInput,
): readonly AgentStep[] {
  return renderedSeed(reconcile, { seed, network }, join).agentSteps;
}

async function isGuestReady(
  reconcile: MachineReconcile,
  step: Extract<AgentStep, { kind: 'wait' }>,
): Promise<boolean> {
  const { output } = await execute(reconcile, { command: step.command });
  return step.until.includes(output.trim());
}

/** Reports only the exit code: the output of a command may repeat its secret input. */
async function run(reconcile: MachineReconcile, step: AgentStep): Promise<void> {
  if (step.kind === 'wait') return;
  const { command, input, name } = step;
  const { exitCode } = await execute(reconcile, {
    command,
    ...(input !== undefined && { input }),
  });
  if (exitCode === 0) return;
  throw new TaskFailed(
    'BOOTSTRAP_FAILED',
    `'${name}' failed in the guest with exit code ${exitCode}`,
  );
}

/** The VM is looked up before every command: a guest in a VM that got the id meanwhile must not see the token. */
async function execute(reconcile: MachineReconcile, command: Omit<GuestCommand, 'timeoutMs'>) {
  await lookUpOwnVm(reconcile);
  return reconcile.hypervisor.guestExec(
    reconcile.vm,
    { ...command, timeoutMs: STEP_TIMEOUT_MS },
    reconcile.context.writeOptions(),
  );
}
