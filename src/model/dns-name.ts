// SPDX-License-Identifier: Apache-2.0
// Names that Kubernetes defines by DNS rules (RFC 1123, lower case).

import { accepted, type Parsed, refused } from './parsed.ts';

const MAX_LABEL_LENGTH = 63;
const MAX_SUBDOMAIN_LENGTH = 253;

/** A single label without dots: namespaces, host names. */
export function parseDnsLabel(text: string): Parsed<string> {
  if (text.length > MAX_LABEL_LENGTH)
    return refused(`is longer than ${MAX_LABEL_LENGTH} characters`);
  if (isLabel(text)) return accepted(text);
  return refused(
    "must be lower case letters, digits and '-', and start and end with a letter or digit",
  );
}

/**
 * Labels joined by dots: node names, prefixes of label keys. As in Kubernetes, a label here may exceed 63
 * characters.
 */
export function parseDnsSubdomain(text: string): Parsed<string> {
  if (text.length > MAX_SUBDOMAIN_LENGTH)
    return refused(`is longer than ${MAX_SUBDOMAIN_LENGTH} characters`);
  if (text.split('.').every(isLabel)) return accepted(text);
  return refused(
    "must be lower case letters, digits, '-' and '.', and each part must start and end with a letter or digit",
  );
}

function isLabel(text: string): boolean {
  return /^[a-z0-9-]+$/.test(text) && !text.startsWith('-') && !text.endsWith('-');
}
