// SPDX-License-Identifier: Apache-2.0
import { createHash } from 'node:crypto';
import { TLSSocket } from 'node:tls';
import { buildConnector } from 'undici';
import { Unauthorized } from '../ports/errors.ts';

/**
 * Connects to whoever presents one of the pinned certificates. Checked after the handshake and before the
 * first byte of a request: whoever else answers learns nothing, not even the token.
 */
export function pinnedConnector(
  allowed: readonly string[],
  timeout: number,
): buildConnector.connector {
  const pins = new Set(allowed.map(normalizeFingerprint));
  // A resumed session may come without the certificate that has to be looked at.
  const connect = buildConnector({
    timeout,
    allowH2: false,
    rejectUnauthorized: false,
    maxCachedSessions: 0,
  });
  return (options, callback) => {
    connect(options, (...[error, socket]) => {
      if (error !== null) return callback(error, null);
      const refusal = refuse(socket, pins, options.host ?? options.hostname);
      if (refusal === undefined) return callback(null, socket);
      socket.destroy();
      callback(refusal, null);
    });
  };
}

function refuse(
  socket: unknown,
  pins: ReadonlySet<string>,
  host: string,
): Unauthorized | undefined {
  if (!(socket instanceof TLSSocket)) return untrusted(host, 'does not speak TLS');
  const leaf = socket.getPeerX509Certificate();
  if (leaf === undefined) return untrusted(host, 'presents no certificate');
  const seen = createHash('sha256').update(leaf.raw).digest('hex');
  if (pins.has(seen)) return undefined;
  return untrusted(host, `presents ${withColons(seen)}, which is not pinned`);
}

function untrusted(host: string, what: string): Unauthorized {
  return new Unauthorized('TLS_NOT_TRUSTED', `${host} ${what}`, { facts: { requestSent: false } });
}

/** Proxmox shows fingerprints as upper-case pairs with colons; people paste them with and without. */
function normalizeFingerprint(text: string): string {
  return text.replace(/[^0-9a-f]/gi, '').toLowerCase();
}

function withColons(hex: string): string {
  return (hex.toUpperCase().match(/../g) ?? []).join(':');
}
