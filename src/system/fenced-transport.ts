// SPDX-License-Identifier: Apache-2.0
import { LostLeadership, PvescalerError } from '../ports/errors.ts';
import type { RequestFence } from '../ports/fence.ts';
import type { Transport, TransportRequest, TransportResponse } from '../ports/transport.ts';

const HARMLESS = ['/access/ticket', '/agent/ping'] as const;

/**
 * Lets nothing out that changes something once the right to act is gone, and keeps account of what it let out. Looking
 * is free, and so are logging in and asking whether a guest is up: they change nothing on the other side.
 */
export function fencedTransport(transport: Transport, gate: RequestFence): Transport {
  return {
    request: (request) =>
      request.method === 'GET' || HARMLESS.some((end) => request.url.endsWith(end))
        ? transport.request(request)
        : watched(transport, gate, request),
    close: () => transport.close(),
  };
}

async function watched(
  transport: Transport,
  gate: RequestFence,
  request: TransportRequest,
): Promise<TransportResponse> {
  if (!gate.mayAct()) {
    throw new LostLeadership('LEASE_LOST', 'this process no longer drives; nothing was sent', {
      facts: { requestSent: false },
    });
  }
  const ended = gate.beginRequest();
  try {
    const response = await transport.request(request);
    // Above 500 it is somebody in between who answers: Proxmox passes calls on to the host that they are about.
    ended(response.status > 500 ? 'unsure' : 'settled');
    return response;
  } catch (error) {
    const wasNotSent = error instanceof PvescalerError && error.facts['requestSent'] === false;
    ended(wasNotSent ? 'settled' : 'unsure');
    throw error;
  }
}
