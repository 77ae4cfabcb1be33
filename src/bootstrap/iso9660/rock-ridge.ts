// SPDX-License-Identifier: Apache-2.0
// Rock Ridge: lower-case names and POSIX modes, stored after each directory record. The 1991 edition has a PX
// entry of 36 bytes; strict readers reject any other length for that edition.
import { ascii, both32 } from './fields.ts';

/** Readable by root only: a mounted seed contains the join secret. */
const FILE_MODE = 0o100_400;
const DIRECTORY_MODE = 0o040_500;

function entry(signature: string, data: readonly number[]): number[] {
  return [...ascii(signature), data.length + 4, 1, ...data];
}

function attributes(mode: number, links: number): number[] {
  return entry('PX', [...both32(mode), ...both32(links), ...both32(0), ...both32(0)]);
}

export function fileUse(name: string): number[] {
  return [...attributes(FILE_MODE, 1), ...entry('NM', [0, ...ascii(name)])];
}

export function parentUse(): number[] {
  return attributes(DIRECTORY_MODE, 2);
}

const IDENTIFIER = 'RRIP_1991A';
const DESCRIPTOR =
  'THE ROCK RIDGE INTERCHANGE PROTOCOL PROVIDES SUPPORT FOR POSIX FILE SYSTEM SEMANTICS';
const SOURCE =
  'PLEASE CONTACT DISC PUBLISHER FOR SPECIFICATION SOURCE.  SEE PUBLISHER IDENTIFIER IN PRIMARY VOLUME DESCRIPTOR FOR CONTACT INFORMATION.';

/** Declares the edition in use. It is too long for a record and has its own sector. */
export const EXTENSION_REFERENCE: readonly number[] = entry('ER', [
  IDENTIFIER.length,
  DESCRIPTOR.length,
  SOURCE.length,
  1,
  ...ascii(IDENTIFIER + DESCRIPTOR + SOURCE),
]);

/** The root's own record declares the extension and the location of its reference. */
export function rootUse(referenceBlock: number): number[] {
  const reference = [
    ...both32(referenceBlock),
    ...both32(0),
    ...both32(EXTENSION_REFERENCE.length),
  ];
  return [
    ...entry('SP', [0xbe, 0xef, 0]),
    ...attributes(DIRECTORY_MODE, 2),
    ...entry('CE', reference),
  ];
}
