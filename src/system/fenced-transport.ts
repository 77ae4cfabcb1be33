// SPDX-License-Identifier: Apache-2.0
import { LostLeadership, PvescalerError } from '../ports/errors.ts';
import type { Transport, TransportRequest, TransportResponse } from '../ports/transport.ts';
import type { RequestFence } from '../ports/write-fence.ts';

/** POST requests without side effects: login, and the check that a guest agent responds. */
const WITHOUT_SIDE_EFFECTS = ['/access/ticket', '/agent/ping'] as const;

/**
 * Refuses requests with side effects once this process is no longer the driver, and reports to the fence how the others
 * ended. Requests without side effects always pass.
 */
export function fencedTransport(transport: Transport, fence: RequestFence): Transport {
  return {
    request: (request) =>
      request.method === 'GET' || WITHOUT_SIDE_EFFECTS.some((end) => request.url.endsWith(end))
        ? transport.request(request)
        : sendFenced(transport, fence, request),
    close: () => transport.close(),
  };
}

async function sendFenced(
  transport: Transport,
  fence: RequestFence,
  request: TransportRequest,
): Promise<TransportResponse> {
  if (!fence.mayAct()) throw leaseLost();
  const endRequest = fence.beginRequest();
  try {
    // The process may be suspended while it connects, until long after its lease has expired.
    const response = await transport.request({ ...request, maySend: () => fence.mayAct() });
    // Statuses above 500 come from the Proxmox node that forwards the request, so the target host may still act.
    endRequest(response.status > 500 ? 'unknown' : 'settled');
    return response;
  } catch (error) {
    const wasNotSent = error instanceof PvescalerError && error.facts['requestSent'] === false;
    endRequest(wasNotSent ? 'settled' : 'unknown');
    throw wasNotSent && !fence.mayAct() ? leaseLost() : error;
  }
}

function leaseLost(): LostLeadership {
  return new LostLeadership(
    'LEASE_LOST',
    'this process is no longer the driver; the request was not sent',
    { facts: { requestSent: false } },
  );
}
