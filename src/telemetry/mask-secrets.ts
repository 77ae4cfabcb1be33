// SPDX-License-Identifier: Apache-2.0
// Masks text that looks like a secret, in case code logs one by mistake.

const MASK = '••••';

const SECRET_PATTERNS: readonly RegExp[] = [
  // Join tokens of k3s and RKE2, with or without a bootstrap token at the end.
  /\bK10[0-9a-f]{64}::[^\s"'\\]+/g,
  // Bootstrap tokens. Also masks host names of the same form.
  /\b[a-z0-9]{6}\.[a-z0-9]{16}\b/g,
  /PVEAPIToken=[^\s"'\\]+/g,
  /\bPVE:[^\s"'\\]+:[0-9A-F]{8}::[^\s"'\\]+/g,
  /\bBearer\s+[^\s"'\\]+/gi,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----/g,
];

export function maskSecrets(text: string): string {
  return SECRET_PATTERNS.reduce((line, pattern) => line.replace(pattern, MASK), text);
}
