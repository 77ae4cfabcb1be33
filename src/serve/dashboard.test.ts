// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Config } from '../config/index.ts';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import type { OpenFleet } from '../setup/index.ts';
import { Dashboard } from './dashboard.ts';

function aDashboard(mode: Config['mode']) {
  const paused: string[] = [];
  const pausePool = (pool: string) => Promise.resolve(void paused.push(pool));
  const dashboard = new Dashboard({
    config: () => ({ mode, pools: [{ name: 'workers' }] }) as unknown as Config,
    version: '1.0.0',
    clock: new VirtualClock(),
    open: () => ({ fleet: { pausePool } }) as unknown as OpenFleet,
    frontEnd: () => undefined,
    problems: () => [],
  });
  return { dashboard, paused };
}

describe('the pause of a pool in the dashboard', () => {
  it('applies to the standalone autoscaler', async () => {
    const { dashboard, paused } = aDashboard('standalone');
    expect(await dashboard.actions.pausePool('workers', 60)).toContain('paused for 60 minutes');
    expect(paused).toEqual(['workers']);
  });

  it('is refused with the Cluster Autoscaler, which knows no pause', async () => {
    const { dashboard, paused } = aDashboard('externalgrpc');
    await expect(dashboard.actions.pausePool('workers', 60)).rejects.toThrow(/Cluster Autoscaler/);
    expect(paused).toEqual([]);
  });
});
