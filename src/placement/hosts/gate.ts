// SPDX-License-Identifier: Apache-2.0
// Whether a host may be asked at all.
import type { Host } from '../../model/host.ts';
import type { Refusal, RefusalReason } from './decision.ts';
import type { HostFilter, PlacementRequest } from './request.ts';

/** Undefined: it may. */
export function gateProblem(host: Host, request: PlacementRequest): Refusal | undefined {
  for (const [whose, { allow, deny }] of filters(request)) {
    if (deny.includes(host.name)) {
      return refusal(host.name, 'HostDenied', `is in hosts.deny of ${whose}`);
    }
    if (allow.length > 0 && !allow.includes(host.name)) {
      return refusal(host.name, 'HostNotAllowed', `is not in hosts.allow of ${whose}`);
    }
  }
  return host.online ? undefined : refusal(host.name, 'HostOffline', 'is offline');
}

/** Hosts that are allowed by name and do not exist: a mistyped name must not read as "no host is allowed". */
export function unknownHosts(
  request: PlacementRequest,
  hosts: readonly Host[],
): readonly Refusal[] {
  const known = new Set(hosts.map(({ name }) => name));
  const missing = filters(request).flatMap(([whose, { allow }]) =>
    allow.filter((name) => !known.has(name)).map((name) => [name, whose] as const),
  );
  const byHostName = new Map(missing.toReversed());
  return [...byHostName].map(([name, whose]) =>
    refusal(name, 'HostUnknown', `is in hosts.allow of ${whose}, but Proxmox has no such host`),
  );
}

function filters({ pool, regionHosts, placement }: PlacementRequest) {
  const all: readonly (readonly [whose: string, filter: HostFilter])[] = [
    ['the region', regionHosts],
    [`pool ${pool}`, placement.hosts],
  ];
  return all;
}

function refusal(host: string, reason: RefusalReason, words: string): Refusal {
  return { host, reason, sentence: `host ${host} ${words}`, numbers: {} };
}
