// SPDX-License-Identifier: Apache-2.0
// What a token may look like. Problems never repeat the token.

/** k3s and RKE2 take passwords of any form; what would break a file or a shell is a mistake of copying. */
export function tokenProblem(token: string): string | undefined {
  if (token === '') return 'the join token is empty';
  return /^[\x21-\x7e]+$/.test(token)
    ? undefined
    : 'the join token has white space or characters beyond ASCII';
}

export function bootstrapTokenProblem(token: string): string | undefined {
  return /^[a-z0-9]{6}\.[a-z0-9]{16}$/.test(token)
    ? undefined
    : "the join token is not a bootstrap token of the form 'abcdef.0123456789abcdef'";
}
