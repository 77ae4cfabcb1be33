// SPDX-License-Identifier: Apache-2.0
// Counts and times the requests to a Proxmox region. The endpoint of a request is its method and path with every
// name taken out, so that the number of series does not grow with hosts, VMs or storages.
import type { Clock } from '../ports/clock.ts';
import { asPvescalerError } from '../ports/errors.ts';
import type { Meters } from '../ports/meters.ts';
import type { Transport, TransportRequest } from '../ports/transport.ts';

export interface MeteredOptions {
  readonly region: string;
  readonly meters: Meters;
  readonly clock: Clock;
}

export function meteredTransport(transport: Transport, options: MeteredOptions): Transport {
  const { region, meters, clock } = options;
  return {
    async request(request) {
      const began = clock.monotonic();
      const endpoint = endpointOf(request);
      const done = (outcome: string) => {
        meters.add('pvescaler_proxmox_requests_total', { region, endpoint, outcome });
        const seconds = (clock.monotonic() - began) / 1_000;
        meters.observe('pvescaler_proxmox_request_duration_seconds', { region, endpoint }, seconds);
      };
      try {
        const answer = await transport.request(request);
        done(`${Math.floor(answer.status / 100)}xx`);
        return answer;
      } catch (error) {
        done(asPvescalerError(error).surface.metricLabel);
        throw error;
      }
    },
    close: () => transport.close(),
  };
}

/** What follows these segments is a name. */
const NAMED: Readonly<Record<string, string>> = {
  nodes: '{host}',
  qemu: '{vmid}',
  lxc: '{vmid}',
  storage: '{storage}',
  content: '{volume}',
  tasks: '{upid}',
};

/** Words of the API. Anything else in a place where a word belongs is not shown either. */
const WORD = /^[a-z][a-z-]{0,31}$/;

export function endpointOf({ method, url }: Pick<TransportRequest, 'method' | 'url'>): string {
  const path = new URL(url).pathname.replace(/^\/api2\/json/, '');
  const segments = path.split('/').filter((segment) => segment !== '');
  const shown = segments.map((segment, at) => {
    const placeholder = at === 0 ? undefined : NAMED[segments[at - 1] ?? ''];
    if (placeholder !== undefined) return placeholder;
    return WORD.test(segment) ? segment : '{name}';
  });
  return `${method} /${shown.slice(0, 8).join('/')}`;
}
