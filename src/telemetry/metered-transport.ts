// SPDX-License-Identifier: Apache-2.0
// Counts and times requests to a Proxmox region. The endpoint label is the method and the path with placeholders for
// names, so that the number of series does not grow with hosts, VMs or storages.
import type { Clock } from '../ports/clock.ts';
import { asPvescalerError } from '../ports/errors.ts';
import type { Meters } from '../ports/meters.ts';
import type { Transport, TransportRequest } from '../ports/transport.ts';

interface MeteredTransportOptions {
  readonly region: string;
  readonly meters: Meters;
  readonly clock: Clock;
}

export function meteredTransport(
  transport: Transport,
  options: MeteredTransportOptions,
): Transport {
  const { region, meters, clock } = options;
  return {
    async request(request) {
      const startedAt = clock.monotonic();
      const endpoint = formatEndpoint(request);
      const record = (outcome: string) => {
        meters.add('pvescaler_proxmox_requests_total', { region, endpoint, outcome });
        const seconds = (clock.monotonic() - startedAt) / 1_000;
        meters.observe('pvescaler_proxmox_request_duration_seconds', { region, endpoint }, seconds);
      };
      const recordError = (error: unknown) =>
        record(asPvescalerError(error).externalCodes.metricLabel);
      try {
        const response = await transport.request(request);
        const recordEnd = () => record(`${Math.floor(response.status / 100)}xx`);
        return { ...response, body: observeEnd(response.body, { recordEnd, recordError }) };
      } catch (error) {
        recordError(error);
        throw error;
      }
    },
    close: () => transport.close(),
  };
}

/** A request ends with the last byte of its answer, or when the reader leaves. */
async function* observeEnd(
  body: AsyncIterable<Uint8Array>,
  end: { recordEnd(): void; recordError(error: unknown): void },
): AsyncIterable<Uint8Array> {
  let isFailed = false;
  try {
    yield* body;
  } catch (error) {
    isFailed = true;
    end.recordError(error);
    throw error;
  } finally {
    if (!isFailed) end.recordEnd();
  }
}

/** The segment after one of these is a name. */
const PLACEHOLDERS: Readonly<Record<string, string>> = {
  nodes: '{host}',
  qemu: '{vmid}',
  lxc: '{vmid}',
  storage: '{storage}',
  content: '{volume}',
  tasks: '{upid}',
};

/** A fixed path segment of the API; anything else is replaced too. */
const FIXED_SEGMENT = /^[a-z][a-z-]{0,31}$/;

export function formatEndpoint({ method, url }: Pick<TransportRequest, 'method' | 'url'>): string {
  const path = new URL(url).pathname.replace(/^\/api2\/json/, '');
  const segments = path.split('/').filter((segment) => segment !== '');
  const shown = segments.map((segment, at) => {
    const placeholder = at === 0 ? undefined : PLACEHOLDERS[segments[at - 1] ?? ''];
    if (placeholder !== undefined) return placeholder;
    return FIXED_SEGMENT.test(segment) ? segment : '{name}';
  });
  return `${method} /${shown.slice(0, 8).join('/')}`;
}
