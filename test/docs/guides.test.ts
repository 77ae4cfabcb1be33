// SPDX-License-Identifier: Apache-2.0
// Runs the sites of guides.ts on simulated hosts and a simulated cluster, without kubectl and helm.
import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { SITES } from './guides.ts';
import { runSite, SITE_LIMIT_MS } from './site.ts';

const isInstalled = (program: string) =>
  program !== 'kubectl' && spawnSync('bash', ['-c', `command -v ${program}`]).status === 0;

describe('the commands of the guides work as they are printed', () => {
  for (const site of SITES) {
    const lacking = (site.needs ?? []).filter((program) => !isInstalled(program));
    it.skipIf(lacking.length > 0)(
      lacking.length === 0 ? site.name : `${site.name} (needs ${lacking.join(', ')})`,
      async () => {
        const { exitCode, output, missing } = await runSite(site);
        expect(exitCode, output).toBe(0);
        expect(missing).toEqual([]);
        expect(output).not.toMatch(/^ +at .*:\d+:\d+\)?$/m);
      },
      SITE_LIMIT_MS + 60_000,
    );
  }
});
