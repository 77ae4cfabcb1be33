// SPDX-License-Identifier: Apache-2.0
// Who may order and delete machines: clients whose certificate our CA signed and that carries one of the names.
import type { PeerCertificate } from 'node:tls';

/** Common name and DNS names; a name in another kind of field proves nothing. */
export function namesOf(
  certificate: Pick<PeerCertificate, 'subject' | 'subjectaltname'>,
): readonly string[] {
  // Node types the subject as always there; a certificate may have none, or several common names.
  const subject: { readonly CN?: string | readonly string[] } | undefined = certificate.subject;
  const common = [subject?.CN ?? []].flat();
  return [...common, ...dnsNames(certificate.subjectaltname ?? '')];
}

/** `DNS:a, IP Address:10.0.0.1, DNS:"b, c"`: quoted where a name holds a separator. */
function dnsNames(altNames: string): readonly string[] {
  const fields = altNames.match(/(?:[^,"]|"(?:[^"\\]|\\.)*")+/g) ?? [];
  return fields
    .map((field) => field.trim())
    .filter((field) => field.startsWith('DNS:') && !field.includes('"'))
    .map((field) => field.slice('DNS:'.length));
}

export function isAllowed(names: readonly string[], allow: readonly string[]): boolean {
  return names.some((name) => allow.includes(name));
}
