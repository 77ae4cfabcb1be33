// SPDX-License-Identifier: Apache-2.0
// Names that Kubernetes takes over from DNS (RFC 1123, lower case).

import { accepted, type Parsed, refused } from './parsed.ts';

const LABEL_LENGTH = 63;
const SUBDOMAIN_LENGTH = 253;

/** One part of a name, without dots: namespaces, host names. */
export function dnsLabel(text: string): Parsed<string> {
  if (text.length > LABEL_LENGTH) return refused(`is longer than ${LABEL_LENGTH} characters`);
  if (isLabel(text)) return accepted(text);
  return refused(
    "must be lower case letters, digits and '-', and start and end with a letter or digit",
  );
}

/** Parts joined by dots: node names, the prefixes of label keys. A part may be longer than a DNS label. */
export function dnsSubdomain(text: string): Parsed<string> {
  if (text.length > SUBDOMAIN_LENGTH)
    return refused(`is longer than ${SUBDOMAIN_LENGTH} characters`);
  if (text.split('.').every(isLabel)) return accepted(text);
  return refused(
    "must be lower case letters, digits, '-' and '.', and each part must start and end with a letter or digit",
  );
}

function isLabel(text: string): boolean {
  return /^[a-z0-9-]+$/.test(text) && !text.startsWith('-') && !text.endsWith('-');
}
