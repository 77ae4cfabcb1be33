// SPDX-License-Identifier: Apache-2.0
// Which files and packages a machine gets, and by which way: user-data, or the guest agent once it is up.
import { accepted, type Parsed, refused } from '../model/parsed.ts';
import { extraFile, twiceProblem } from './check-guest.ts';
import type { GuestFile } from './guest-file.ts';
import { firstBootFile, joinFiles } from './join-unit.ts';
import { proxyFiles } from './proxy.ts';
import type { JoinPlan } from './recipes/join-plan.ts';
import { planJoin } from './recipes/recipe-for.ts';
import { hostOf } from './recipes/server-url.ts';
import type { Registration } from './registration.ts';
import type { JoinInput, SeedInput } from './seed-input.ts';

export interface FirstBoot {
  readonly files: readonly GuestFile[];
  readonly filesByAgent: readonly GuestFile[];
  readonly packages: readonly string[];
}

export function firstBootOf(input: SeedInput, registration: Registration): Parsed<FirstBoot> {
  const plan = planOf(input, registration);
  if (!plan.ok) return plan;
  const own = filesOf(plan.value, input.join);
  const joinsItself = isVia(input.join, 'cloud-init');
  const early = [
    ...input.join.files.map(extraFile),
    ...proxyOf(input.join, plan.value),
    ...(joinsItself ? own : []),
    firstBootFile(joinsItself),
  ];
  const late = joinsItself ? [] : own;
  const twice = twiceProblem([...early, ...late]);
  if (twice !== undefined) return refused(twice);
  const base = input.preinstalled ? [] : ['qemu-guest-agent', ...(plan.value?.packages ?? [])];
  return accepted({
    files: early,
    filesByAgent: late,
    packages: [...new Set([...base, ...input.join.packages])],
  });
}

function planOf(input: SeedInput, registration: Registration): Parsed<JoinPlan | undefined> {
  const { join, machine, pool } = input;
  if (join.kind === 'none') return accepted(undefined);
  return planJoin(join, { machine, architecture: pool.architecture, registration });
}

function isVia(join: JoinInput, via: 'cloud-init' | 'agent'): boolean {
  return join.kind !== 'none' && join.via === via;
}

function filesOf(plan: JoinPlan | undefined, join: JoinInput): readonly GuestFile[] {
  if (plan === undefined || join.kind === 'none') return [];
  return [...plan.files, ...plan.secrets, ...joinFiles(plan, join.via)];
}

function proxyOf(join: JoinInput, plan: JoinPlan | undefined): readonly GuestFile[] {
  if (join.proxy === undefined) return [];
  const direct = 'server' in join ? [hostOf(join.server)] : [];
  return proxyFiles({ proxy: join.proxy, direct, services: plan?.services ?? [] });
}
