// SPDX-License-Identifier: Apache-2.0
// Volume descriptors and path tables, which locate the root directories.
import { rootRecord } from './directory.ts';
import {
  ascii,
  big32,
  both16,
  both32,
  little32,
  SECTOR_BYTES,
  ucs2,
  volumeTime,
} from './fields.ts';

export interface Volume {
  readonly kind: 'primary' | 'joliet';
  readonly label: string;
  readonly root: number;
  readonly littlePathTable: number;
  readonly bigPathTable: number;
  readonly blocks: number;
  readonly createdAtMs: number;
}

const APPLICATION = 'PVESCALER';
/** One entry, for the root. */
const PATH_TABLE_BYTES = 10;
/** Joliet level 3. */
const JOLIET_ESCAPE = '%/E';

export function descriptor(volume: Volume): Uint8Array {
  const isJoliet = volume.kind === 'joliet';
  const text = (value: string, bytes: number) =>
    isJoliet ? padded(ucs2(value), bytes, [0, 0x20]) : padded(ascii(value), bytes, [0x20]);
  const fields: readonly (readonly [offset: number, bytes: readonly number[]])[] = [
    [0, [isJoliet ? 2 : 1, ...ascii('CD001'), 1]],
    [8, text('', 32)],
    [40, text(volume.label, 32)],
    [80, both32(volume.blocks)],
    [88, isJoliet ? ascii(JOLIET_ESCAPE) : []],
    [120, both16(1)],
    [124, both16(1)],
    [128, both16(SECTOR_BYTES)],
    [132, both32(PATH_TABLE_BYTES)],
    [140, little32(volume.littlePathTable)],
    [148, big32(volume.bigPathTable)],
    [156, rootRecord(volume.root, volume.createdAtMs)],
    // Volume set, publisher, preparer; then the application; then three file names.
    ...[190, 318, 446].map((offset) => [offset, text('', 128)] as const),
    [574, text(APPLICATION, 128)],
    ...[702, 739, 776].map((offset) => [offset, text('', 37)] as const),
    [813, volumeTime(volume.createdAtMs)],
    [830, volumeTime(volume.createdAtMs)],
    [847, volumeTime(undefined)],
    [864, volumeTime(volume.createdAtMs)],
    [881, [1]],
  ];
  const sector = new Uint8Array(SECTOR_BYTES);
  for (const [offset, bytes] of fields) sector.set(bytes, offset);
  return sector;
}

function padded(bytes: readonly number[], length: number, filler: readonly number[]): number[] {
  return Array.from({ length }, (_, index) => bytes[index] ?? filler[index % filler.length] ?? 0);
}

export function terminator(): Uint8Array {
  return Uint8Array.from([255, ...ascii('CD001'), 1]);
}

export function littlePathTable(root: number): Uint8Array {
  return Uint8Array.from([1, 0, ...little32(root), 1, 0, 0, 0]);
}

export function bigPathTable(root: number): Uint8Array {
  return Uint8Array.from([1, 0, ...big32(root), 0, 1, 0, 0]);
}
