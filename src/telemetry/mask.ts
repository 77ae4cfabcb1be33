// SPDX-License-Identifier: Apache-2.0
// The last gate before a line leaves the process. Whoever logs a secret has made a mistake; it shall cost nothing.

const MASK = '••••';

const LOOKS_SECRET: readonly RegExp[] = [
  // Join tokens of k3s and RKE2, with or without a bootstrap token at their end.
  /\bK10[0-9a-f]{64}::[^\s"'\\]+/g,
  // Bootstrap tokens. A host name may look like one too, and is masked with them.
  /\b[a-z0-9]{6}\.[a-z0-9]{16}\b/g,
  /PVEAPIToken=[^\s"'\\]+/g,
  /\bPVE:[^\s"'\\]+:[0-9A-F]{8}::[^\s"'\\]+/g,
  /\bBearer\s+[^\s"'\\]+/gi,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----/g,
];

export function masked(text: string): string {
  return LOOKS_SECRET.reduce((line, pattern) => line.replace(pattern, MASK), text);
}
