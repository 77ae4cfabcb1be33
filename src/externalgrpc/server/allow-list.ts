// SPDX-License-Identifier: Apache-2.0
// Who may order and delete machines: clients whose certificate our CA signed and that carries one of the names. The
// form of a name on the list says in which field of a certificate it counts: an authority that lets its clients choose
// their common name must not thereby let them choose another's URI.
import { isIP, SocketAddress } from 'node:net';
import type { PeerCertificate } from 'node:tls';

type Kind = 'name' | 'uri' | 'email' | 'ip';

export interface PeerName {
  readonly kind: Kind;
  readonly text: string;
}

/** As Node prints them. Fields of other sorts prove nothing. */
const FIELDS: readonly (readonly [string, Kind])[] = [
  ['DNS:', 'name'],
  ['URI:', 'uri'],
  ['email:', 'email'],
  ['IP Address:', 'ip'],
];

/** The common names and the alternative ones. */
export function namesOf(
  certificate: Pick<PeerCertificate, 'subject' | 'subjectaltname'>,
): readonly PeerName[] {
  // Node types the subject as always there; a certificate may have none, or several common names.
  const subject: { readonly CN?: string | readonly string[] } | undefined = certificate.subject;
  const common = [subject?.CN ?? []].flat().map((text) => ({ kind: 'name', text }) as const);
  return [...common, ...alternativeNames(certificate.subjectaltname ?? '')];
}

/**
 * `DNS:a, IP Address:10.0.0.1, DNS:"b\u002c c"`: a name with a comma, a quote or the like is quoted and its commas
 * are escaped, so that no name can look like two.
 */
function alternativeNames(printed: string): readonly PeerName[] {
  return printed.split(', ').flatMap((field) => {
    const [prefix, kind] = FIELDS.find(([start]) => field.startsWith(start)) ?? [];
    if (prefix === undefined || kind === undefined) return [];
    const text = unquoted(field.slice(prefix.length));
    return text === undefined ? [] : [{ kind, text: kind === 'ip' ? sameForm(text) : text }];
  });
}

function unquoted(printed: string): string | undefined {
  if (!printed.startsWith('"')) return printed;
  try {
    return String(JSON.parse(printed));
  } catch {
    return undefined;
  }
}

/** Exactly, and only in a field of the sort that the name on the list is of. */
export function isAllowed(names: readonly PeerName[], allow: readonly string[]): boolean {
  return allow.some((entry) => {
    const kind = kindOf(entry);
    const text = kind === 'ip' ? sameForm(entry) : entry;
    return names.some((name) => name.kind === kind && name.text === text);
  });
}

function kindOf(entry: string): Kind {
  if (isIP(entry) !== 0) return 'ip';
  if (/^[A-Za-z][A-Za-z0-9+.-]*:\/\//.test(entry)) return 'uri';
  return entry.includes('@') ? 'email' : 'name';
}

/** An IPv6 address can be written in several ways. */
function sameForm(address: string): string {
  const family = isIP(address);
  if (family === 0) return address;
  return new SocketAddress({ address, family: family === 6 ? 'ipv6' : 'ipv4' }).address;
}
