// SPDX-License-Identifier: Apache-2.0
// Which files and packages a machine gets, and how: by user-data, or by the guest agent after the boot.
import { accepted, type Parsed, refused } from '../model/parsed.ts';
import { duplicatePathProblem, toGuestFile } from './check-guest.ts';
import type { GuestFile } from './guest-file.ts';
import { renderFirstBootFile, renderJoinFiles } from './join-unit.ts';
import { renderProxyFiles } from './proxy.ts';
import type { JoinPlan } from './recipes/join-plan.ts';
import { planJoin } from './recipes/recipe-for.ts';
import { hostnameOf } from './recipes/server-url.ts';
import type { Registration } from './registration.ts';
import type { JoinInput, SeedInput } from './seed-input.ts';

export interface FirstBoot {
  readonly files: readonly GuestFile[];
  readonly filesByAgent: readonly GuestFile[];
  readonly packages: readonly string[];
}

export function planFirstBoot(input: SeedInput, registration: Registration): Parsed<FirstBoot> {
  const plan = planJoinOf(input, registration);
  if (!plan.ok) return plan;
  const own = joinFilesOf(plan.value, input.join);
  const joinsItself = joinsVia(input.join, 'cloud-init');
  const early = [
    ...input.join.files.map(toGuestFile),
    ...proxyFilesOf(input.join, plan.value),
    ...(joinsItself ? own : []),
    renderFirstBootFile(joinsItself),
  ];
  const late = joinsItself ? [] : own;
  const duplicate = duplicatePathProblem([...early, ...late]);
  if (duplicate !== undefined) return refused(duplicate);
  const base = input.preinstalled ? [] : ['qemu-guest-agent', ...(plan.value?.packages ?? [])];
  return accepted({
    files: early,
    filesByAgent: late,
    packages: [...new Set([...base, ...input.join.packages])],
  });
}

function planJoinOf(input: SeedInput, registration: Registration): Parsed<JoinPlan | undefined> {
  const { join, machine, pool } = input;
  if (join.kind === 'none') return accepted(undefined);
  return planJoin(join, { machine, architecture: pool.architecture, registration });
}

function joinsVia(join: JoinInput, via: 'cloud-init' | 'agent'): boolean {
  return join.kind !== 'none' && join.via === via;
}

function joinFilesOf(plan: JoinPlan | undefined, join: JoinInput): readonly GuestFile[] {
  if (plan === undefined || join.kind === 'none') return [];
  return [...plan.files, ...plan.secrets, ...renderJoinFiles(plan, join.via)];
}

function proxyFilesOf(join: JoinInput, plan: JoinPlan | undefined): readonly GuestFile[] {
  if (join.proxy === undefined) return [];
  const direct = 'server' in join ? [hostnameOf(join.server)] : [];
  return renderProxyFiles({ proxy: join.proxy, direct, services: plan?.services ?? [] });
}
