// SPDX-License-Identifier: Apache-2.0
import { LostLeadership } from '../ports/errors.ts';
import type { Fence } from '../ports/fence.ts';
import type { Transport } from '../ports/transport.ts';

/**
 * Lets nothing out that changes something once the right to act is gone. Looking is free, and so is logging in:
 * it changes nothing on the other side.
 */
export function fencedTransport(transport: Transport, fence: Fence): Transport {
  return {
    async request(request) {
      const isHarmless = request.method === 'GET' || request.url.endsWith('/access/ticket');
      if (!isHarmless && !fence.mayAct()) {
        throw new LostLeadership('LEASE_LOST', 'this process no longer drives; nothing was sent', {
          facts: { requestSent: false },
        });
      }
      return transport.request(request);
    },
    close: () => transport.close(),
  };
}
