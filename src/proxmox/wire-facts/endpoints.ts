// SPDX-License-Identifier: Apache-2.0
// All endpoints with their parameters.
import { ENDPOINT_ROWS, PARAM_FACTS, PARAM_SETS } from './gen/endpoints.ts';
import type { ApiVersion, EndpointFact, EndpointRow, ParamFact } from './types.ts';

/** Highest index of each numbered option (`scsi30`, `net31`, …); the lowest is 0. */
export const INDEX_RANGES: Readonly<Record<string, number>> = {
  hostpci: 15,
  ide: 3,
  ipconfig: 31,
  net: 31,
  numa: 7,
  parallel: 2,
  sata: 5,
  scsi: 30,
  serial: 3,
  unused: 255,
  usb: 13,
  virtio: 15,
  virtiofs: 9,
  acmedomain: 5,
};

function withParams(row: EndpointRow): EndpointFact {
  const params: Record<string, ParamFact> = {};
  for (const [name, index] of Object.entries(PARAM_SETS[row.params] ?? {})) {
    params[name] = PARAM_FACTS[index] ?? {};
  }
  return { ...row, params };
}

const tables = new Map<ApiVersion, readonly EndpointFact[]>();

export function endpointsOf(version: ApiVersion): readonly EndpointFact[] {
  const cached = tables.get(version);
  if (cached !== undefined) return cached;
  const endpoints = ENDPOINT_ROWS.filter((row) => row.versions.includes(version)).map(withParams);
  tables.set(version, endpoints);
  return endpoints;
}
