// SPDX-License-Identifier: Apache-2.0
import { createHash } from 'node:crypto';
import { connect as connectTls, TLSSocket } from 'node:tls';
import { buildConnector } from 'undici';
import { Unauthorized } from '../ports/errors.ts';
import { certificateError } from './socket-errors.ts';

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

/** Verifies the chain. The error for a certificate that is not trusted contains its fingerprint, so that it can be pinned. */
export function verifyingConnector(
  settings: buildConnector.BuildOptions & { readonly timeout: number },
): buildConnector.connector {
  const connect = buildConnector(settings);
  return (options, callback) => {
    connect(options, (...[error, socket]) => {
      if (error === null) return callback(null, socket);
      const code = certificateError(error);
      if (code === undefined) return callback(error, null);
      readFingerprint(options, settings.timeout, (fingerprint) => {
        const { hostname, port } = options;
        callback(refused(`${hostname}:${port || 443}`, { code, fingerprint, cause: error }), null);
      });
    });
  };
}

function refused(
  host: string,
  {
    code,
    fingerprint,
    cause,
  }: { readonly code: string; readonly fingerprint: string | undefined; readonly cause: Error },
): Unauthorized {
  const suffix = fingerprint === undefined ? '' : `; its SHA-256 fingerprint is ${fingerprint}`;
  return new Unauthorized(
    'TLS_NOT_TRUSTED',
    `the certificate of ${host} is not trusted (${code})${suffix}`,
    { cause, facts: { requestSent: false, socketError: code } },
  );
}

/** A second handshake, over which nothing is sent. Undefined when it fails. */
function readFingerprint(
  { hostname, port, servername }: buildConnector.Options,
  timeout: number,
  onEnd: (fingerprint: string | undefined) => void,
): void {
  const socket = connectTls({
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(port) || 443,
    ...(servername !== undefined && { servername }),
    rejectUnauthorized: false,
    timeout,
  });
  let fingerprint: string | undefined;
  socket.once('secureConnect', () => {
    fingerprint = socket.getPeerX509Certificate()?.fingerprint256;
    socket.destroy();
  });
  socket.once('timeout', () => socket.destroy());
  socket.once('error', () => socket.destroy());
  socket.once('close', () => onEnd(fingerprint));
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
