// SPDX-License-Identifier: Apache-2.0
// The files behind a TLS listener, read again and again: certificates are renewed while we run. What cannot be read
// or does not fit together is told, and the listener goes on with what it had.
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

const LOOK_EVERY_MS = 10_000;

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
      throw new InvalidConfig('CONFIG_UNREADABLE', `${what} ${path} cannot be read`, { cause });
    });
  const { certPath, keyPath, clientCaPath } = paths;
  const context: SecureContextOptions = {
    cert: await text(certPath, 'the certificate'),
    key: await text(keyPath, 'the private key'),
    ...(clientCaPath !== undefined && { ca: await text(clientCaPath, 'the clients’ CA') }),
    minVersion: 'TLSv1.2',
  };
  try {
    createSecureContext(context);
  } catch (cause) {
    throw new InvalidConfig(
      'CONFIG_INVALID',
      `${certPath}, ${keyPath} and ${clientCaPath ?? 'no client CA'} do not make a TLS listener: ${String(cause)}`,
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

/** Until the signal. The same trouble is told once. */
export async function watchCertificates(parts: WatchParts): Promise<void> {
  const { clock, signal, onChange, warn } = parts;
  let { current } = parts;
  let told: string | undefined;
  while (!signal.aborted) {
    await clock.sleep(LOOK_EVERY_MS, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    try {
      const next = await readCertificates(parts);
      told = undefined;
      if (isSame(current, next)) continue;
      onChange(next);
      current = next;
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (message !== told) warn(`${message}; the listener keeps the certificate it has`);
      told = message;
    }
  }
}

function isSame(left: SecureContextOptions, right: SecureContextOptions): boolean {
  return left.cert === right.cert && left.key === right.key && left.ca === right.ca;
}
