// SPDX-License-Identifier: Apache-2.0
// What a node of a pool, and what a pod, costs for a while. Only relations matter: any currency will do.
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import type { FaceSettings, GroupSettings } from '../settings.ts';
import type { PodDemand } from './pod-requests.ts';

const GIB = 2 ** 30;
const HOUR_MS = 3_600_000;

export function nodePricePerHour(
  { size, pricePerHour }: GroupSettings,
  pricing: FaceSettings['pricing'],
): number {
  return pricePerHour ?? pricePerHourOf({ cpuMilli: size.cpu * 1_000, ...size }, pricing);
}

export function pricePerHourOf(
  { cpuMilli, memoryBytes }: PodDemand,
  { vcpuHour, memoryGiBHour }: FaceSettings['pricing'],
): number {
  return (cpuMilli / 1_000) * vcpuHour + (memoryBytes / GIB) * memoryGiBHour;
}

/** The newer pair of times, else the older; a span that is none counts as an hour. */
export function hoursOf(
  newer: readonly [Timestamp | undefined, Timestamp | undefined],
  older: readonly [Timestamp | undefined, Timestamp | undefined],
): number {
  const [start, end] = newer[0] === undefined || newer[1] === undefined ? older : newer;
  if (start === undefined || end === undefined) return 1;
  const hours = (timestampMs(end) - timestampMs(start)) / HOUR_MS;
  return hours > 0 ? hours : 1;
}
