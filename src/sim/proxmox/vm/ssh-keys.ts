// SPDX-License-Identifier: Apache-2.0
import { serverError } from '../api-error.ts';

const KEY =
  /(?:^|\s)(ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-nistp(?:256|384|521)|sk-(?:ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com)\s+([A-Za-z0-9+/]+={0,3})(?:\s|$)/;

/** The parameter value is URL-encoded, in addition to the encoding of the body. */
export function decodeSshKeys(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function checkSshKeys(text: string | undefined): void {
  if (text === undefined) return;
  for (const line of decodeSshKeys(text).split('\n')) {
    if (line.trim() !== '' && !isSshKey(line)) throw serverError('SSH public key validation error');
  }
}

/** A key is a list of fields, each with its length in four bytes before it. The first is the type again. */
function isSshKey(line: string): boolean {
  const [, type = '', encoded = ''] = KEY.exec(line) ?? [];
  const bytes = Buffer.from(encoded, 'base64');
  const fields: Buffer[] = [];
  let at = 0;
  while (at + 4 <= bytes.length) {
    const end = at + 4 + bytes.readUInt32BE(at);
    fields.push(bytes.subarray(at + 4, end));
    at = end;
  }
  if (at !== bytes.length || fields[0]?.toString('latin1') !== type) return false;
  return type === 'ssh-ed25519'
    ? fields.length === 2 && fields[1]?.length === 32
    : fields.length > 1;
}
