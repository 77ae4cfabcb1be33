// SPDX-License-Identifier: Apache-2.0
// Equal settings of both modes. The simulated hosts and guests are twenty times as fast as real ones, and so are all delays.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

export const SPEED = 20;
export const HOSTS = 5;
export const MAX_MACHINES = 40;
/** The default is 2 s; a twentieth would be shorter than the real controller manager needs to create the pods. */
export const STABILIZATION_WINDOW = '500ms';

/** In seconds on the machine of the benchmark; twenty times as long in simulated time. */
export const DELAYS = {
  /** The shortest that both accept. The default of both, 10 s, would be half of it. */
  scan: 1,
  /** Half of the default of both. */
  unneededTime: 300 / SPEED,
  delayAfterAdd: 300 / SPEED,
  delayAfterFailure: 180 / SPEED,
} as const;

const SCALE_DOWN = `scaleDown:
      unneededTime: ${DELAYS.unneededTime}s
      delayAfterAdd: ${DELAYS.delayAfterAdd}s
      delayAfterFailure: ${DELAYS.delayAfterFailure}s`;

/** The rest of the first pool, which has 2 CPUs and 2 GiB, and two pools of larger machines. */
export function renderPools(): string {
  const scaling = `    scaleUp: { stabilizationWindow: ${STABILIZATION_WINDOW} }\n    ${SCALE_DOWN}\n`;
  const pool = (name: string, size: string) => `
  - name: ${name}
    from: { image: noble }
    size: { ${size}, disk: 20Gi }
    limits: { min: 0, max: ${MAX_MACHINES} }
    labels: { tier: small }
${scaling}`;
  return `${scaling}${pool('middle', 'cpu: 4, memory: 8Gi')}${pool('large', 'cpu: 8, memory: 16Gi')}`;
}

/** The flags of deploy/cluster-autoscaler/values.yaml, with shorter times. */
export function autoscalerFlags(): Readonly<Record<string, string>> {
  const path = join(import.meta.dirname, '../../deploy/cluster-autoscaler/values.yaml');
  const { extraArgs } = parse(readFileSync(path, 'utf8')) as {
    readonly extraArgs: Readonly<Record<string, string | number | boolean>>;
  };
  const flags = Object.entries(extraArgs).map(([name, value]) => [name, String(value)] as const);
  const { 'cloud-config': _, ...recommended } = Object.fromEntries(flags);
  return {
    ...recommended,
    'scan-interval': `${DELAYS.scan}s`,
    'scale-down-unneeded-time': `${DELAYS.unneededTime}s`,
    'scale-down-delay-after-add': `${DELAYS.delayAfterAdd}s`,
    'scale-down-delay-after-failure': `${DELAYS.delayAfterFailure}s`,
    // Defaults of 5 minutes and 5 seconds.
    'unremovable-node-recheck-timeout': `${300 / SPEED}s`,
    'node-delete-delay-after-taint': `${(5 * 1_000) / SPEED}ms`,
  };
}
