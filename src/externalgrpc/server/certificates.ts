// SPDX-License-Identifier: Apache-2.0
// The certificate files of a TLS listener, read periodically: certificates are renewed while the server runs. When the
// files cannot be read or do not match, a warning is logged and the listener keeps its current certificate.
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import type { Clock } from '../../ports/clock.ts';
import { InvalidConfig } from '../../ports/errors.ts';

export interface CertificatePaths {
  readonly certPath: string;
  readonly keyPath: string;
  /** Absent: clients need no certificate. */
  readonly clientCaPath?: string | undefined;
}

export type ReadText = (path: string) => Promise<string>;

const CHECK_INTERVAL_MS = 10_000;

export interface CertificateParts {
  readonly paths: CertificatePaths;
  readonly read: ReadText;
}

export async function readCertificates({
  paths,
  read,
}: CertificateParts): Promise<SecureContextOptions> {
  const text = (path: string, what: string) =>
    read(path).catch((cause: unknown) => {
      throw new InvalidConfig('CONFIG_UNREADABLE', `cannot read ${what} ${path}`, { cause });
    });
  const { certPath, keyPath, clientCaPath } = paths;
  const context: SecureContextOptions = {
    cert: await text(certPath, 'the certificate'),
    key: await text(keyPath, 'the private key'),
    ...(clientCaPath !== undefined && { ca: await text(clientCaPath, 'the client CA') }),
    minVersion: 'TLSv1.2',
  };
  try {
    createSecureContext(context);
  } catch (cause) {
    throw new InvalidConfig(
      'CONFIG_INVALID',
      `${certPath}, ${keyPath} and ${clientCaPath ?? 'no client CA'} are not valid for a TLS listener: ${String(cause)}`,
      { cause },
    );
  }
  return context;
}

interface WatchParts extends CertificateParts {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly current: SecureContextOptions;
  readonly onChange: (context: SecureContextOptions) => void;
  readonly warn: (message: string) => void;
}

/** Runs until the signal aborts. Warns once per distinct error. */
export async function watchCertificates(parts: WatchParts): Promise<void> {
  const { clock, signal, onChange, warn } = parts;
  let { current } = parts;
  let lastWarning: string | undefined;
  while (!signal.aborted) {
    await clock.sleep(CHECK_INTERVAL_MS, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    try {
      const next = await readCertificates(parts);
      lastWarning = undefined;
      if (isSame(current, next)) continue;
      onChange(next);
      current = next;
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (message !== lastWarning) warn(`${message}; the listener keeps its current certificate`);
      lastWarning = message;
    }
  }
}

function isSame(left: SecureContextOptions, right: SecureContextOptions): boolean {
  return left.cert === right.cert && left.key === right.key && left.ca === right.ca;
}
