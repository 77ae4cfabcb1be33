// SPDX-License-Identifier: Apache-2.0
// A pool's name becomes a Proxmox tag (`ca-group-<pool>`, which Proxmox lower-cases), a Kubernetes label
// value, the id of a Cluster Autoscaler node group and, by default, the stem of machine names: hence lower
// case, a DNS label, and short enough that `<pool>-<8 digits>` is still a host name.
import { accepted, type Parsed, refused } from './parsed.ts';

export const POOL_NAME_MAX = 54;
const DNS_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

export function parsePoolName(text: string): Parsed<string> {
  if (text === '') return refused('is empty');
  if (text.length > POOL_NAME_MAX) return refused(`is longer than ${POOL_NAME_MAX} characters`);
  if (DNS_LABEL.test(text)) return accepted(text);
  return refused(
    `'${text}' is not a DNS label: lower-case letters, digits and '-', starting and ending with a letter or digit`,
  );
}

/** The tag by which people and lists find a pool's VMs. Copies inherit it: it never proves ownership. */
export function poolTag(pool: string): string {
  return `ca-group-${pool}`;
}
