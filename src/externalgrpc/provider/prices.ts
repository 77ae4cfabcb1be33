// SPDX-License-Identifier: Apache-2.0
// Prices of nodes and pods over a time span. Only ratios matter, so any currency works.

import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import type { PoolConfig } from '../../config/types/index.ts';
import type { ExternalGrpcSettings } from '../settings.ts';
import type { PodRequests } from './pod-requests.ts';

const GIB = 2 ** 30;
const HOUR_MS = 3_600_000;

export function nodePricePerHour(
  { size, pricePerHour }: PoolConfig,
  pricing: ExternalGrpcSettings['pricing'],
): number {
  return pricePerHour ?? resourcePricePerHour({ cpuMilli: size.cpu * 1_000, ...size }, pricing);
}

export function resourcePricePerHour(
  { cpuMilli, memoryBytes }: PodRequests,
  { vcpuHour, memoryGiBHour }: ExternalGrpcSettings['pricing'],
): number {
  return (cpuMilli / 1_000) * vcpuHour + (memoryBytes / GIB) * memoryGiBHour;
}

/** Uses the newer pair of timestamps, else the older one. A missing or empty span counts as one hour. */
export function billedHours(
  newer: readonly [Timestamp | undefined, Timestamp | undefined],
  older: readonly [Timestamp | undefined, Timestamp | undefined],
): number {
  const [start, end] = newer[0] === undefined || newer[1] === undefined ? older : newer;
  if (start === undefined || end === undefined) return 1;
  const hours = (timestampMs(end) - timestampMs(start)) / HOUR_MS;
  return hours > 0 ? hours : 1;
}
