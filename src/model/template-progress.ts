// SPDX-License-Identifier: Apache-2.0
// How far the build of a template is. The shares are estimates: how long a download or an installation takes is not known
// before. The guest reports only once its agent runs, which is installed with the packages.
import type { Machine, Phase } from './machine.ts';
import { isTemplateGroup } from './role.ts';

interface Stage {
  /** When the phase begins. */
  readonly percent: number;
  readonly step: string;
}

const STAGES: Partial<Record<Phase, Stage>> = {
  requested: { percent: 0, step: 'waiting to be placed' },
  placed: { percent: 5, step: 'downloading the image' },
  creating: { percent: 30, step: 'importing the image' },
  configuring: { percent: 40, step: 'uploading the seed' },
  starting: { percent: 45, step: 'starting' },
  booting: { percent: 50, step: 'installing packages' },
  joining: { percent: 90, step: 'shutting down and converting' },
  ready: { percent: 100, step: 'ready' },
};

/** `guestPercent` is what the guest reports while it installs. */
export function buildPercent(phase: Phase, guestPercent = 0): number {
  const from = STAGES[phase]?.percent ?? 0;
  if (phase !== 'booting') return from;
  const to = STAGES.joining?.percent ?? 100;
  return Math.round(from + ((to - from) * guestPercent) / 100);
}

/** `ubuntu on pve1: 30 %, importing the image`. Undefined for other machines, and for one that is not being built. */
export function describeBuild({
  pool,
  phase,
  placement,
  requiredHost,
}: Machine): string | undefined {
  const stage = STAGES[phase];
  if (!isTemplateGroup(pool) || stage === undefined) return undefined;
  const host = placement?.host ?? requiredHost?.host ?? '-';
  return `${placement?.name ?? 'template'} on ${host}: ${stage.percent} %, ${stage.step}`;
}
