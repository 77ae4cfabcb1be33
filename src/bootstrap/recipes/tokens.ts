// SPDX-License-Identifier: Apache-2.0
// Validation of join tokens. Problems never contain the token.

/** k3s and RKE2 accept any password. Characters that would break a file or a shell script are copy mistakes. */
export function tokenProblem(token: string): string | undefined {
  if (token === '') return 'the join token is empty';
  return /^[\x21-\x7e]+$/.test(token)
    ? undefined
    : 'the join token contains white space or non-ASCII characters';
}

export function bootstrapTokenProblem(token: string): string | undefined {
  return /^[a-z0-9]{6}\.[a-z0-9]{16}$/.test(token)
    ? undefined
    : "the join token must be a bootstrap token of the form 'abcdef.0123456789abcdef'";
}
