// SPDX-License-Identifier: Apache-2.0
// Whether the configuration and the host's state allow placing machines on it.
import type { Host } from '../../model/host.ts';
import type { HostRefusal, RefusalReason } from './decision.ts';
import type { HostFilter, PlacementRequest } from './request.ts';

/** Returns undefined if the host is allowed. */
export function hostFilterProblem(host: Host, request: PlacementRequest): HostRefusal | undefined {
  for (const [owner, { allow, deny }] of hostFilters(request)) {
    if (deny.includes(host.name)) {
      return refusal(host.name, 'HostDenied', `is in hosts.deny of ${owner}`);
    }
    if (allow.length > 0 && !allow.includes(host.name)) {
      return refusal(host.name, 'HostNotAllowed', `is not in hosts.allow of ${owner}`);
    }
  }
  return host.online ? undefined : refusal(host.name, 'HostOffline', 'is offline');
}

/** Hosts in `allow` that do not exist. Without this check a mistyped name would read as "no host is allowed". */
export function findUnknownHosts(
  request: PlacementRequest,
  hosts: readonly Host[],
): readonly HostRefusal[] {
  const known = new Set(hosts.map(({ name }) => name));
  const missing = hostFilters(request).flatMap(([owner, { allow }]) =>
    allow.filter((name) => !known.has(name)).map((name) => [name, owner] as const),
  );
  const byHostName = new Map(missing.toReversed());
  return [...byHostName].map(([name, owner]) =>
    refusal(name, 'HostUnknown', `is in hosts.allow of ${owner}, but Proxmox has no such host`),
  );
}

function hostFilters({ pool, regionHosts, placement }: PlacementRequest) {
  const all: readonly (readonly [whose: string, filter: HostFilter])[] = [
    ['the region', regionHosts],
    [`pool ${pool}`, placement.hosts],
  ];
  return all;
}

function refusal(host: string, reason: RefusalReason, text: string): HostRefusal {
  return { host, reason, message: `host ${host} ${text}`, numbers: {} };
}
