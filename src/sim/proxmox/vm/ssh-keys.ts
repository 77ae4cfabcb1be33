// SPDX-License-Identifier: Apache-2.0
import { serverError } from '../api-error.ts';

const KEY =
  /^(?:\S+\s+)?(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-nistp(?:256|384|521)|sk-(?:ssh-ed25519|ecdsa-sha2-nistp256)@openssh\.com)\s+[A-Za-z0-9+/]+={0,3}(?:\s.*)?$/;

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
    const key = line.trim();
    if (key === '' || key.startsWith('#')) continue;
    if (!KEY.test(key)) throw serverError('SSH public key validation error');
  }
}
