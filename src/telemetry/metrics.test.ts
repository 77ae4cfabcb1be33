// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Unreachable } from '../ports/errors.ts';
import { ScriptedTransport } from '../ports/fakes/scripted-transport.ts';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import { METRIC_NAMES, METRICS } from '../ports/metric-table.ts';
import { formatEndpoint, meteredTransport } from './metered-transport.ts';
import { createMetrics } from './metrics.ts';

/** Labels whose number of values does not grow with the number of machines. */
const BOUNDED = [
  'version',
  'outcome',
  'source',
  'region',
  'host',
  'pool',
  'phase',
  'bound',
  'kind',
  'reason',
  'endpoint',
  'method',
  'resource',
  'state',
  // Methods of the CloudProvider service, and gRPC status codes.
  'rpc',
  'code',
];

describe('the metric table', () => {
  it.each(METRIC_NAMES)('%s follows the naming rules and has only bounded labels', (name) => {
    const { type, labels } = METRICS[name];
    expect(name).toMatch(/^pvescaler_[a-z_]+$/);
    expect(name.endsWith('_total')).toBe(type === 'counter');
    expect(name.endsWith('_duration_seconds')).toBe(type === 'histogram');
    for (const label of labels) expect(BOUNDED).toContain(label);
  });
});

describe('createMetrics', () => {
  it('exposes every metric before the first measurement', async () => {
    const text = await createMetrics({ includeProcess: false }).read();
    for (const name of METRIC_NAMES) expect(text).toContain(`# TYPE ${name} ${METRICS[name].type}`);
  });

  it('records counters, histograms and gauges', async () => {
    const metrics = createMetrics({ includeProcess: false });
    metrics.add('pvescaler_reconciles_total', { outcome: 'success' });
    metrics.add('pvescaler_reconciles_total', { outcome: 'success' }, 2);
    metrics.observe('pvescaler_reconcile_duration_seconds', {}, 0.2);
    metrics.set('pvescaler_pool_target_size', [
      { labels: { pool: 'a' }, value: 1 },
      { labels: { pool: 'b' }, value: 2 },
    ]);
    metrics.set('pvescaler_pool_target_size', [{ labels: { pool: 'b' }, value: 3 }]);
    const text = await metrics.read();
    expect(text).toContain('pvescaler_reconciles_total{outcome="success"} 3');
    expect(text).toContain('pvescaler_reconcile_duration_seconds_bucket{le="0.25"} 1');
    expect(text).toContain('pvescaler_pool_target_size{pool="b"} 3');
    expect(text).not.toContain('pool="a"');
  });
});

describe('formatEndpoint', () => {
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
    expect(formatEndpoint({ method: 'GET', url: `${base}${path}` })).toBe(expected);
  });
});

describe('meteredTransport', () => {
  it('counts responses by status and failures by error class', async () => {
    const metrics = createMetrics({ includeProcess: false });
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
      timeoutMs: 1,
    } as const;
    const readAnswer = async () => {
      for await (const _part of (await transport.request(request)).body);
    };
    await readAnswer();
    await readAnswer();
    await expect(readAnswer()).rejects.toThrow('refused');
    const text = await metrics.read();
    for (const outcome of ['2xx', '5xx', 'unreachable']) {
      expect(text).toContain(
        `pvescaler_proxmox_requests_total{region="lab",endpoint="GET /version",outcome="${outcome}"} 1`,
      );
    }
  });

  it('counts an answer that stalls as timed out, with the time until then', async () => {
    const metrics = createMetrics({ includeProcess: false });
    const clock = new VirtualClock();
    async function* stall() {
      yield new Uint8Array(1);
      await new Promise(() => undefined);
    }
    const inner = new ScriptedTransport(() => ({ status: 200, body: stall() }), { clock });
    const transport = meteredTransport(inner, { region: 'lab', meters: metrics, clock });
    const url = 'https://pve1:8006/api2/json/version';
    const { body } = await transport.request({ method: 'GET', url, timeoutMs: 35_000 });
    const parts = body[Symbol.asyncIterator]();
    await parts.next();
    const rejection = expect(parts.next()).rejects.toMatchObject({ code: 'REQUEST_TIMED_OUT' });
    await clock.advance(35_000);
    await rejection;
    const text = await metrics.read();
    const labels = 'region="lab",endpoint="GET /version"';
    expect(text).toContain(`pvescaler_proxmox_requests_total{${labels},outcome="timed_out"} 1`);
    expect(text).not.toContain('outcome="2xx"');
    expect(text).toContain(`pvescaler_proxmox_request_duration_seconds_sum{${labels}} 35`);
  });
});
