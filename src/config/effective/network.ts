// SPDX-License-Identifier: Apache-2.0
import type { PoolFile } from '../schema/index.ts';
import { type AddressRange, parseAddressRange } from '../values/ip-address.ts';
import { unwrapParsed } from './convert.ts';

export type FamilyConfig =
  | { readonly kind: 'dhcp' }
  /** Router advertisements; IPv6 only. */
  | { readonly kind: 'auto' }
  | { readonly kind: 'off' }
  | {
      readonly kind: 'static';
      readonly ranges: readonly { readonly from: string; readonly to: string }[];
      readonly prefix: number;
      readonly gateway: string | undefined;
    };

type Ip = PoolFile['network']['ip'];
type StaticIp = Extract<Ip, { pool: unknown }>;
type FamilyFile = Extract<Ip, { v4: unknown }>['v4' | 'v6'];

export function buildNetwork({ interfaces, ip }: PoolFile['network']) {
  return {
    interfaces: interfaces.map((card) => ({
      ...card,
      queues: card.queues === 0 ? undefined : card.queues,
    })),
    ...buildIp(ip),
  };
}

function buildIp(ip: Ip) {
  if (ip === 'dhcp') return families({ kind: 'dhcp' }, { kind: 'auto' });
  const names = { dns: ip.dns, search: ip.search };
  if ('v4' in ip) return { ...families(buildFamily(ip.v4), buildFamily(ip.v6)), ...names };
  const fixed = buildStatic(ip);
  const isV6 = parseRanges(ip.pool)[0]?.family === 6;
  return isV6
    ? { ...families({ kind: 'off' }, fixed), ...names }
    : { ...families(fixed, { kind: 'auto' }), ...names };
}

function families(v4: FamilyConfig, v6: FamilyConfig) {
  const none: readonly string[] = [];
  return { v4, v6, dns: none, search: none };
}

function buildFamily(family: FamilyFile): FamilyConfig {
  return typeof family === 'string' ? { kind: family } : buildStatic(family);
}

function buildStatic({ pool, prefix, gateway }: Pick<StaticIp, 'pool' | 'prefix' | 'gateway'>) {
  const ranges = parseRanges(pool).map(({ from, to }) => ({ from, to }));
  return { kind: 'static' as const, ranges, prefix, gateway };
}

function parseRanges(pool: StaticIp['pool']): readonly AddressRange[] {
  return [pool].flat().map((text) => unwrapParsed(parseAddressRange(text)));
}
