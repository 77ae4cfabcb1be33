// SPDX-License-Identifier: Apache-2.0
import { createHash } from 'node:crypto';
import { TLSSocket } from 'node:tls';
import { buildConnector } from 'undici';
import { Unauthorized } from '../ports/errors.ts';

/**
 * Connects only to servers with a pinned certificate. The check happens after the handshake and before the first byte
 * of a request, so that another server receives nothing, not even the token.
 */
export function pinnedConnector(
  allowed: readonly string[],
  timeout: number,
): buildConnector.connector {
  const pins = new Set(allowed.map(normalizeFingerprint));
  // No session cache: a resumed session may not provide the certificate to check.
  const connect = buildConnector({
    timeout,
    allowH2: false,
    rejectUnauthorized: false,
    maxCachedSessions: 0,
  });
  return (options, callback) => {
    connect(options, (...[error, socket]) => {
      if (error !== null) return callback(error, null);
      const refusal = checkCertificate(socket, pins, options.host ?? options.hostname);
      if (refusal === undefined) return callback(null, socket);
      socket.destroy();
      callback(refusal, null);
    });
  };
}

function checkCertificate(
  socket: unknown,
  pins: ReadonlySet<string>,
  host: string,
): Unauthorized | undefined {
  if (!(socket instanceof TLSSocket)) return untrusted(host, 'does not use TLS');
  const leaf = socket.getPeerX509Certificate();
  if (leaf === undefined) return untrusted(host, 'presents no certificate');
  const fingerprint = createHash('sha256').update(leaf.raw).digest('hex');
  if (pins.has(fingerprint)) return undefined;
  return untrusted(
    host,
    `presents the certificate ${formatFingerprint(fingerprint)}, which is not in tls.fingerprints`,
  );
}

function untrusted(host: string, what: string): Unauthorized {
  return new Unauthorized('TLS_NOT_TRUSTED', `${host} ${what}`, { facts: { requestSent: false } });
}

/** Proxmox shows upper-case pairs with colons; users also write them without. */
function normalizeFingerprint(text: string): string {
  return text.replace(/[^0-9a-f]/gi, '').toLowerCase();
}

function formatFingerprint(hex: string): string {
  return (hex.toUpperCase().match(/../g) ?? []).join(':');
}
