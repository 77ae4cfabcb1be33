// SPDX-License-Identifier: Apache-2.0
// From Node's HTTP/2 to the services. Not connect's own adapter: that one decodes before anybody has looked at the
// bytes, and ends the process at an address that is no URL.
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { type ConnectRouter, createConnectRouter, type Interceptor } from '@connectrpc/connect';
import type { UniversalHandler } from '@connectrpc/connect/protocol';
import {
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from '@connectrpc/connect-node';
import type { Clock } from '../../ports/clock.ts';
import { type MessagePlan, planOf } from './message-plan.ts';
import { MessageRoom } from './message-room.ts';
import { MESSAGE_MAX_BYTES, wholeMessages } from './messages.ts';
import { refuseGrpc, STATUS } from './refuse.ts';

/** The autoscaler is next door: packing an answer takes longer than sending it. */
const COMPRESS_FROM_BYTES = 2 ** 20;

/** Sixteen of the largest. */
const MESSAGES_MAX_BYTES = 16 * MESSAGE_MAX_BYTES;

export type Handler = (request: Http2ServerRequest, response: Http2ServerResponse) => void;

export interface AdapterOptions {
  readonly routes: (router: ConnectRouter) => void;
  readonly interceptors: readonly Interceptor[];
  readonly clock: Clock;
  readonly shutdown: AbortSignal;
}

interface Rpc {
  readonly handle: UniversalHandler;
  readonly plan: MessagePlan;
}

export function grpcHandler({ routes, interceptors, clock, shutdown }: AdapterOptions): Handler {
  const router = createConnectRouter({
    grpc: true,
    grpcWeb: false,
    connect: false,
    readMaxBytes: MESSAGE_MAX_BYTES,
    compressMinBytes: COMPRESS_FROM_BYTES,
    // For answers, and cheap: a client chooses among them, and packing holds up everything else that waits for a thread.
    acceptCompression: [compressionGzip],
    // Each would cost a hundred times what it is on the wire.
    binaryOptions: { readUnknownFields: false },
    interceptors: [...interceptors],
    shutdownSignal: shutdown,
  });
  routes(router);
  const rpcs = new Map<string, Rpc>(
    router.handlers.map((handle) => [
      handle.requestPath,
      { handle, plan: planOf(handle.method.input) },
    ]),
  );
  const room = new MessageRoom(MESSAGES_MAX_BYTES);
  return (request, response) => {
    const { stream } = response;
    const rpc = rpcs.get(request.url);
    if (rpc === undefined) {
      return refuseGrpc(stream, { status: STATUS.unimplemented, message: 'no such RPC' });
    }
    const universal = readRequest(request, response);
    if (universal === undefined) {
      const message = `${JSON.stringify(request.authority)} is no authority`;
      return refuseGrpc(stream, { status: STATUS.invalidArgument, message });
    }
    const share = room.share();
    stream.once('close', share.giveBack);
    const body = wholeMessages(request, { plan: rpc.plan, share, clock });
    rpc
      .handle({ ...universal, body })
      .then((answer) => universalResponseToNodeResponse(answer, response))
      // The stream is broken then, and the client knows.
      .catch(() => stream.close());
  };
}

/** Undefined: the client names no host in a form that makes a URL. */
function readRequest(request: Http2ServerRequest, response: Http2ServerResponse) {
  try {
    return universalRequestFromNodeRequest(request, response, undefined, undefined);
  } catch {
    return undefined;
  }
}
