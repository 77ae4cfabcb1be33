// SPDX-License-Identifier: Apache-2.0
// A region for tests: the API is a table of responses by request line, on virtual time.
import { Unreachable } from '../ports/errors.ts';
import { advanceUntilSettled } from '../ports/fakes/advance-until-settled.ts';
import {
  type RecordedRequest,
  type ScriptedResponse,
  ScriptedTransport,
} from '../ports/fakes/scripted-transport.ts';
import { SeededRandom } from '../ports/fakes/seeded-random.ts';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import type { Hypervisor } from '../ports/hypervisor.ts';
import { createProxmoxHypervisor, type ProxmoxOptions } from './index.ts';
import { checkRequest } from './testing/check-request.ts';

export const UPID = 'UPID:pve1:0003E1A4:12345678:66A0B2C3:qmcreate:160:scaler@pve!main:';
export const TASK = { upid: UPID, kind: 'create', host: 'pve1' } as const;
export const SECRET = '11111111-2222-3333-4444-555555555555';

export type Route = (request: RecordedRequest) => ScriptedResponse | Promise<ScriptedResponse>;

export function okResponse(data: unknown, total?: number): ScriptedResponse {
  return { status: 200, reason: 'OK', body: JSON.stringify({ data, total }) };
}

/** As since 8.4: the reason phrase contains the first line of the text, the body all of it. */
export function errorResponse(status: number, text: string, errors?: unknown): ScriptedResponse {
  return {
    status,
    reason: text.split('\n')[0] ?? '',
    body: JSON.stringify({ data: null, message: `${text}\n`, errors }),
  };
}

export function failConnection(requestSent: boolean): never {
  throw new Unreachable('PVE_UNREACHABLE', 'connection failed', { facts: { requestSent } });
}

export interface ScriptedRegion {
  readonly hypervisor: Hypervisor;
  readonly transport: ScriptedTransport;
  readonly clock: VirtualClock;
  /** `POST /nodes/pve1/qemu`, in the order sent, without `GET /version`. */
  requestLines(): readonly string[];
  lastRequest(): RecordedRequest;
  lastForm(): Record<string, string>;
  /** Advances the clock until the promise settles. */
  advanceUntil<T>(work: Promise<T>): Promise<T>;
}

export function createScriptedRegion(
  routes: Readonly<Record<string, Route | ScriptedResponse>>,
  options: Partial<ProxmoxOptions> = {},
): ScriptedRegion {
  const clock = new VirtualClock();
  const all: Readonly<Record<string, Route | ScriptedResponse>> = {
    'GET /version': okResponse({ version: '9.2.1', release: '9.2' }),
    ...routes,
  };
  const transport = new ScriptedTransport(
    (request) => {
      checkRequest(request);
      const name = requestLine(request);
      const route = all[name];
      if (route === undefined) throw new Error(`the test has no response for ${name}`);
      return typeof route === 'function' ? route(request) : route;
    },
    { clock },
  );
  const hypervisor = createProxmoxHypervisor({
    region: 'home',
    endpoints: ['https://pve1:8006'],
    credentials: { kind: 'token', id: 'scaler@pve!main', secret: () => SECRET },
    transport,
    clock,
    random: new SeededRandom(1),
    ...options,
  });
  return {
    hypervisor,
    transport,
    clock,
    requestLines: () =>
      transport.requests.map(requestLine).filter((name) => name !== 'GET /version'),
    lastRequest: () => lastItem(transport.requests),
    lastForm: () => Object.fromEntries(new URLSearchParams(lastItem(transport.requests).text)),
    advanceUntil: (work) => advanceUntilSettled(clock, work),
  };
}

function requestLine(request: RecordedRequest): string {
  const path = decodeURIComponent(request.url.pathname.replace('/api2/json', ''));
  return `${request.method} ${path}`;
}

function lastItem(requests: readonly RecordedRequest[]): RecordedRequest {
  const last = requests.at(-1);
  if (last === undefined) throw new Error('the client sent no request');
  return last;
}
