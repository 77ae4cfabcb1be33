// SPDX-License-Identifier: Apache-2.0
// A simulated cluster on virtual time with a small HTTP client, for the tests of the simulator.
import { SeededRandom } from '../../../ports/fakes/seeded-random.ts';
import { VirtualClock } from '../../../ports/fakes/virtual-clock.ts';
import type { SimResponse } from '../http/messages.ts';
import { createProxmoxSim, type ProxmoxSim, type SimOptions } from '../sim.ts';
import { type ClusterDescription, defaultCluster } from '../state/cluster-description.ts';

export const TOKEN = 'PVEAPIToken=scaler@pve!sim=00000000-0000-4000-8000-000000000001';
const GIB = 2 ** 30;

/** The default cluster plus images to import and a user without privileges (`weak@pve`). */
export function testCluster(hosts = 1): ClusterDescription {
  const base = defaultCluster(hosts);
  return {
    ...base,
    storages: base.storages.map((storage) =>
      storage.name === 'local'
        ? {
            ...storage,
            files: [
              { name: 'import/noble-with-agent.qcow2', size: GIB / 2, virtualSize: 3 * GIB },
              {
                name: 'import/chained.qcow2',
                size: 1024,
                virtualSize: GIB,
                backingFile: 'base.raw',
              },
              { name: 'iso/debian.iso', size: 700 * 2 ** 20 },
            ],
          }
        : storage,
    ),
    users: [
      ...(base.users ?? []),
      {
        id: 'weak@pve',
        password: 'weak',
        tokens: [
          { id: 'sep', secret: '11111111-1111-4111-8111-111111111111' },
          { id: 'old', secret: '22222222-2222-4222-8222-222222222222', expire: 1 },
        ],
      },
    ],
  };
}

export interface HarnessResponse extends SimResponse {
  // oxlint-disable-next-line typescript/no-explicit-any -- tests read response data of any shape
  readonly data: any;
  readonly errors: Readonly<Record<string, string>> | undefined;
  readonly message: string | undefined;
}

type Params = Readonly<Record<string, string | number | readonly string[]>>;

function encode(params: Params): string {
  return Object.entries(params)
    .flatMap(([key, value]) =>
      Array.isArray(value) ? value.map((item) => [key, item]) : [[key, value]],
    )
    .map(
      ([key, value]) => `${encodeURIComponent(String(key))}=${encodeURIComponent(String(value))}`,
    )
    .join('&');
}

export class SimHarness {
  readonly clock = new VirtualClock();
  readonly sim: ProxmoxSim;
  authorization: string = TOKEN;

  constructor(options: Partial<SimOptions> = {}) {
    this.sim = createProxmoxSim({
      cluster: testCluster(),
      clock: this.clock,
      random: new SeededRandom(7),
      ...options,
    });
  }

  /** Sends parameters in the query of GET and DELETE, otherwise in the body. */
  async call(method: string, path: string, params: Params = {}): Promise<HarnessResponse> {
    const inQuery = method === 'GET' || method === 'DELETE';
    const text = encode(params);
    return await this.send({
      method,
      target: `/api2/json${path}${inQuery && text !== '' ? `?${text}` : ''}`,
      ...(inQuery
        ? {}
        : { body: text, headers: { 'content-type': 'application/x-www-form-urlencoded' } }),
    });
  }

  /** Advances virtual time until the response arrives. */
  async send(request: Parameters<ProxmoxSim['handle']>[0]): Promise<HarnessResponse> {
    const headers = { authorization: this.authorization, ...request.headers };
    const response = await this.runUntilSettled(this.sim.handle({ ...request, headers }));
    const parsed = response.body.startsWith('{') ? JSON.parse(response.body) : {};
    return { ...response, data: parsed.data, errors: parsed.errors, message: parsed.message };
  }

  async runUntilSettled<T>(promise: Promise<T>): Promise<T> {
    const ended = new AbortController();
    const end = () => ended.abort();
    promise.then(end, end);
    for (let step = 0; step < 1000 && !ended.signal.aborted; step += 1) {
      await this.clock.advance(0);
      if (!ended.signal.aborted && !(await this.clock.advanceToNext())) break;
    }
    return await promise;
  }

  /** Waits for the end of the task and returns its exit status. */
  async waitForTask(response: HarnessResponse): Promise<string> {
    if (response.status !== 200)
      throw new Error(`${response.status} ${response.reason} ${response.body}`);
    const upid = String(response.data);
    const node = upid.split(':')[1] ?? '';
    for (let step = 0; step < 500; step += 1) {
      const { data } = await this.call('GET', `/nodes/${node}/tasks/${upid}/status`);
      if (data.status === 'stopped') return data.exitstatus;
      await this.clock.advanceToNext();
    }
    throw new Error(`task ${upid} did not end after 500 status requests`);
  }

  /** Creates a VM on pve1 and waits for the task. */
  async createVm(id: number, params: Params = {}): Promise<void> {
    const response = await this.call('POST', '/nodes/pve1/qemu', { vmid: id, ...params });
    const status = await this.waitForTask(response);
    if (status !== 'OK') throw new Error(status);
  }
}
