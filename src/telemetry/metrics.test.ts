// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Unreachable } from '../ports/errors.ts';
import { ScriptedTransport } from '../ports/fakes/scripted-transport.ts';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import { METRIC_NAMES, METRICS } from '../ports/metric-table.ts';
import { endpointOf, meteredTransport } from './metered-transport.ts';
import { createMetrics } from './metrics.ts';

/** Labels whose values the fleet's size does not multiply. */
const BOUNDED = [
  'version',
  'outcome',
  'side',
  'region',
  'pool',
  'phase',
  'bound',
  'kind',
  'reason',
  'endpoint',
  'call',
  'resource',
  // The methods of services that we define, and the status codes of gRPC.
  'rpc',
  'code',
];

describe('the table of metrics', () => {
  it.each(METRIC_NAMES)('%s is named after the rules and has bounded labels only', (name) => {
    const { type, labels } = METRICS[name];
    expect(name).toMatch(/^pvescaler_[a-z_]+$/);
    expect(name.endsWith('_total')).toBe(type === 'counter');
    expect(name.endsWith('_duration_seconds')).toBe(type === 'histogram');
    for (const label of labels) expect(BOUNDED).toContain(label);
  });
});

describe('metrics', () => {
  it('are shown with their help, also before anything was measured', async () => {
    const text = await createMetrics({ ofProcess: false }).read();
    for (const name of METRIC_NAMES) expect(text).toContain(`# TYPE ${name} ${METRICS[name].type}`);
  });

  it('count, observe and set', async () => {
    const metrics = createMetrics({ ofProcess: false });
    metrics.add('pvescaler_rounds_total', { outcome: 'done' });
    metrics.add('pvescaler_rounds_total', { outcome: 'done' }, 2);
    metrics.observe('pvescaler_round_duration_seconds', {}, 0.2);
    metrics.set('pvescaler_pool_target', [
      { labels: { pool: 'a' }, value: 1 },
      { labels: { pool: 'b' }, value: 2 },
    ]);
    metrics.set('pvescaler_pool_target', [{ labels: { pool: 'b' }, value: 3 }]);
    const text = await metrics.read();
    expect(text).toContain('pvescaler_rounds_total{outcome="done"} 3');
    expect(text).toContain('pvescaler_round_duration_seconds_bucket{le="0.25"} 1');
    expect(text).toContain('pvescaler_pool_target{pool="b"} 3');
    expect(text).not.toContain('pool="a"');
  });
});

describe('the endpoint of a request', () => {
  const base = 'https://pve1:8006/api2/json';
  it.each([
    ['/nodes/pve-1/qemu/1250/config?x=1', 'GET /nodes/{host}/qemu/{vmid}/config'],
    ['/nodes/pve1/qemu/1250/agent/exec-status', 'GET /nodes/{host}/qemu/{vmid}/agent/exec-status'],
    ['/nodes/pve1/qemu', 'GET /nodes/{host}/qemu'],
    [
      '/nodes/pve1/storage/seeds/content/seeds%3Aiso%2Fx.iso',
      'GET /nodes/{host}/storage/{storage}/content/{volume}',
    ],
    ['/nodes/pve1/tasks/UPID%3Apve1%3A00/status', 'GET /nodes/{host}/tasks/{upid}/status'],
    ['/cluster/resources', 'GET /cluster/resources'],
    ['/access/4711', 'GET /access/{name}'],
  ])('%s', (path, expected) => {
    expect(endpointOf({ method: 'GET', url: `${base}${path}` })).toBe(expected);
  });
});

describe('a metered transport', () => {
  it('counts answers by status and failures by class', async () => {
    const metrics = createMetrics({ ofProcess: false });
    const clock = new VirtualClock();
    const statuses = [200, 500];
    const inner = new ScriptedTransport(() => {
      const status = statuses.shift();
      if (status === undefined) throw new Unreachable('PVE_UNREACHABLE', 'refused');
      return { status };
    });
    const transport = meteredTransport(inner, { region: 'lab', meters: metrics, clock });
    const request = {
      method: 'GET',
      url: 'https://pve1:8006/api2/json/version',
      headTimeoutMs: 1,
    } as const;
    await transport.request(request);
    await transport.request(request);
    await expect(transport.request(request)).rejects.toThrow('refused');
    const text = await metrics.read();
    for (const outcome of ['2xx', '5xx', 'unreachable']) {
      expect(text).toContain(
        `pvescaler_proxmox_requests_total{region="lab",endpoint="GET /version",outcome="${outcome}"} 1`,
      );
    }
  });
});
