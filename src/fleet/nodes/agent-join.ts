// SPDX-License-Identifier: Apache-2.0
// The join through the guest agent: wait for the system, write files by standard input, start the join. Done once
// per process and machine; doing it again after a crash writes the same files with another token.
import type { AgentStep, JoinInput } from '../../bootstrap/index.ts';
import { TaskFailed } from '../../ports/errors.ts';
import type { Job } from '../lifecycle/job.ts';
import { renderedSeed } from '../lifecycle/seed.ts';
import type { PoolSettings, SeedSettings } from '../settings.ts';
import { joinOfAgent, joinOfSeed } from './join-input.ts';

const STEP_TIMEOUT_MS = 20_000;

type Seeded = PoolSettings & { readonly seed: SeedSettings };

/** Does nothing for pools that join from user-data, and until the guest is far enough. */
export async function joinByAgent(job: Job): Promise<void> {
  const { pool, turn } = job;
  if (!isSeeded(pool) || turn.memory.joinedByAgent.has(job.id)) return;
  const { join } = pool.seed;
  if (join.kind === 'none' || join.via !== 'agent') return;
  // Whether the guest is far enough is asked before a token is made for it.
  const [first] = stepsOf(job, pool, await joinOfSeed(job, join));
  if (first?.kind === 'wait' && !(await isFarEnough(job, first))) return;
  for (const step of stepsOf(job, pool, await joinOfAgent(job, join))) await run(job, step);
  turn.memory.joinedByAgent.add(job.id);
  turn.memory.tokens.delete(job.id);
  const message = `${job.placement.name} was told to join`;
  await job.tell({ kind: 'did', reason: 'JoinStarted', message });
}

function isSeeded(pool: PoolSettings | undefined): pool is Seeded {
  return pool?.seed !== undefined;
}

function stepsOf(job: Job, { seed, network }: Seeded, join: JoinInput): readonly AgentStep[] {
  return renderedSeed(job, { seed, network }, join).agentSteps;
}

async function isFarEnough(job: Job, step: Extract<AgentStep, { kind: 'wait' }>): Promise<boolean> {
  const { command, until } = step;
  const timeoutMs = STEP_TIMEOUT_MS;
  const { output } = await job.hypervisor.guestExec(
    job.vm,
    { command, timeoutMs },
    job.turn.acting,
  );
  return until.includes(output.trim());
}

/** What a command says may repeat what it was given: only its exit code is told. */
async function run(job: Job, step: AgentStep): Promise<void> {
  if (step.kind === 'wait') return;
  const { command, input, name } = step;
  const { exitCode } = await job.hypervisor.guestExec(
    job.vm,
    { command, timeoutMs: STEP_TIMEOUT_MS, ...(input !== undefined && { input }) },
    job.turn.acting,
  );
  if (exitCode === 0) return;
  throw new TaskFailed('BOOTSTRAP_FAILED', `'${name}' in the guest ended with code ${exitCode}`);
}
