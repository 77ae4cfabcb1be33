// SPDX-License-Identifier: Apache-2.0
// Names that Kubernetes defines by DNS rules (RFC 1123, lower case).
import { accepted, type Parsed, refused } from './parsed.ts';
import { roleOf } from './role.ts';

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

// A pool's name becomes a Proxmox tag (`ca-group-<pool>`, which Proxmox lower-cases), a Kubernetes label value,
// the id of a Cluster Autoscaler node group and, by default, the prefix of machine names. It must therefore be
// a lower-case DNS label, short enough that `<pool>-<8 digits>` is a valid host name.

export const MAX_POOL_NAME_LENGTH = 54;
const DNS_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

export function parsePoolName(text: string): Parsed<string> {
  if (text === '') return refused('is empty');
  if (text.length > MAX_POOL_NAME_LENGTH)
    return refused(`is longer than ${MAX_POOL_NAME_LENGTH} characters`);
  if (DNS_LABEL.test(text)) return accepted(text);
  return refused(
    `'${text}' is not a DNS label: lower-case letters, digits and '-', starting and ending with a letter or digit`,
  );
}

/** The tag that groups a pool's VMs in the Proxmox UI. Copies inherit it, so it never proves ownership. */
export function poolTag(pool: string): string {
  return `ca-group-${pool}`;
}

/** The same for hand-made VMs: `role-<role>`. */
export function groupTag(group: string): string {
  const role = roleOf(group);
  return role === undefined ? poolTag(group) : `role-${role}`;
}

/** The node group of one size of a pool's list. */
export function nodeGroupId(pool: string, size: string): string {
  return `${pool}-${size}`;
}
