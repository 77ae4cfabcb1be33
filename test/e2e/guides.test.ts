// SPDX-License-Identifier: Apache-2.0
// Runs the sites of test/docs/guides.ts with kubectl and helm on a real control plane.
import { beforeAll, describe, expect, it } from 'vitest';
import { SITES } from '../docs/guides.ts';
import { runSite, SITE_LIMIT_MS } from '../docs/site.ts';
import { startControlPlane } from './controlplane/index.ts';
import { BUILD_TIMEOUT_MS, buildHelm, buildKubectl } from './support/command-line-tools.ts';
import { IS_SAMPLE } from './support/standalone-site.ts';

/** Those that are mostly kubectl and helm. `npm test` runs the others, without kubectl. */
const SAMPLE = ['the trial of mode standalone', 'an installation in the cluster'];
const CHOSEN = IS_SAMPLE ? SITES.filter(({ name }) => SAMPLE.includes(name)) : SITES;

let programs: { readonly kubectl: string; readonly helm: string };
beforeAll(() => {
  programs = { kubectl: buildKubectl(), helm: buildHelm() };
}, BUILD_TIMEOUT_MS);

describe('the commands of the guides work as they are printed, with kubectl', () => {
  it('are chosen', () => {
    expect(CHOSEN).toHaveLength(IS_SAMPLE ? SAMPLE.length : SITES.length);
  });

  it.each(CHOSEN.map((site) => [site.name, site] as const))(
    '%s',
    async (_name, site) => {
      const plane = await startControlPlane();
      try {
        const run = await runSite(site, { ...programs, kubeconfig: plane.kubeconfig });
        expect(run.exitCode, run.output).toBe(0);
        expect(run.missing).toEqual([]);
      } finally {
        await plane.stop();
      }
    },
    SITE_LIMIT_MS + 240_000,
  );
});
