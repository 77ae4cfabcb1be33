// SPDX-License-Identifier: Apache-2.0
// Checks a packing with kube-scheduler's own plugins, placement by placement.

import { join } from 'node:path';
import { resourceQuantities } from '../../src/model/resources.ts';
import type { Packing } from '../../src/scheduling/index.ts';
import { ReferenceProcess } from '../../test/parity/reference-process.ts';
import { buildGoProgram } from '../../test/support/go-program.ts';
import type { Workload } from './workload.ts';

const root = join(import.meta.dirname, '..', '..');
const program = join(root, '.cache', 'oracle', 'scheduler');

export function buildOracle(log: (text: string) => void): void {
  buildGoProgram({ source: join(root, 'test', 'oracle', 'scheduler'), program, log });
}

/** How many placements the oracle rejects. */
export async function countRejectedPlacements(
  { pods }: Workload,
  packing: Packing,
): Promise<number> {
  const sources = new Map(pods.map((pod) => [pod.metadata.uid ?? '', pod]));
  await using oracle = new ReferenceProcess(program);
  const response = await oracle.request({
    kind: 'place',
    cluster: { namespaces: [{ metadata: { name: 'default' } }] },
    arriving: packing.machines.map(({ node }) => ({
      metadata: { name: node.name, labels: node.labels },
      status: { allocatable: resourceQuantities(node.allocatable) },
    })),
    placements: packing.steps.map(({ pod, node }) => ({ pod: sources.get(pod.uid), node })),
  });
  const steps = (response['steps'] ?? []) as readonly (readonly string[])[];
  return steps.filter((plugins) => plugins.length > 0).length;
}
