// SPDX-License-Identifier: Apache-2.0
// Which clients may create and delete machines: those with a certificate that the client CA signed and that contains one
// of the allowed names. The form of an allowed name decides in which certificate field it counts: a CA that lets its
// clients choose their common name must not thereby let them claim another client's URI.
import { isIP, SocketAddress } from 'node:net';
import type { PeerCertificate } from 'node:tls';

type NameKind = 'name' | 'uri' | 'email' | 'ip';

export interface PeerName {
  readonly kind: NameKind;
  readonly text: string;
}

/** In Node's notation. Fields of other kinds are ignored. */
const SAN_FIELDS: readonly (readonly [string, NameKind])[] = [
  ['DNS:', 'name'],
  ['URI:', 'uri'],
  ['email:', 'email'],
  ['IP Address:', 'ip'],
];

/** The common names and the subject alternative names. */
export function readCertificateNames(
  certificate: Pick<PeerCertificate, 'subject' | 'subjectaltname'>,
): readonly PeerName[] {
  // Node's type says that the subject always exists; a certificate may have none, or several common names.
  const subject: { readonly CN?: string | readonly string[] } | undefined = certificate.subject;
  const common = [subject?.CN ?? []].flat().map((text) => ({ kind: 'name', text }) as const);
  return [...common, ...parseAlternativeNames(certificate.subjectaltname ?? '')];
}

/**
 * `DNS:a, IP Address:10.0.0.1, DNS:"b\u002c c"`: Node quotes a name with special characters and escapes its commas, so
 * one name cannot imitate two.
 */
function parseAlternativeNames(printed: string): readonly PeerName[] {
  return printed.split(', ').flatMap((field) => {
    const [prefix, kind] = SAN_FIELDS.find(([start]) => field.startsWith(start)) ?? [];
    if (prefix === undefined || kind === undefined) return [];
    const text = unquote(field.slice(prefix.length));
    return text === undefined
      ? []
      : [{ kind, text: kind === 'ip' ? normalizeAddress(text) : text }];
  });
}

function unquote(printed: string): string | undefined {
  if (!printed.startsWith('"')) return printed;
  try {
    return String(JSON.parse(printed));
  } catch {
    return undefined;
  }
}

/** Compares exactly, and only fields of the kind that the allowed name has. */
export function isAllowed(names: readonly PeerName[], allow: readonly string[]): boolean {
  return allow.some((entry) => {
    const kind = nameKindOf(entry);
    const text = kind === 'ip' ? normalizeAddress(entry) : entry;
    return names.some((name) => name.kind === kind && name.text === text);
  });
}

function nameKindOf(entry: string): NameKind {
  if (isIP(entry) !== 0) return 'ip';
  if (/^[A-Za-z][A-Za-z0-9+.-]*:\/\//.test(entry)) return 'uri';
  return entry.includes('@') ? 'email' : 'name';
}

/** An IPv6 address has several notations. */
function normalizeAddress(address: string): string {
  const family = isIP(address);
  if (family === 0) return address;
  return new SocketAddress({ address, family: family === 6 ? 'ipv6' : 'ipv4' }).address;
}
