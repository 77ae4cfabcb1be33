// SPDX-License-Identifier: Apache-2.0
// Guesses which text must not be repeated in a message. Wrong guesses cost little: the message has the
// position, so whoever wrote the value finds it.

const SECRET_WORD =
  /pass(word|phrase|wd)?|pwd|secret|token|credential|(private|api|access|auth|encryption|join)[-_]?key/i;

/** Keys that speak of a secret without holding one. */
const NAMES_A_SECRET =
  /(File|Env|Ref|Ttl|Hashes|[-_](file|path|dir|config|ttl|webhook))$|^(secretRef|credentialsRef|publicKeys?)$/;

/** Whether a value under this key is to be treated as a secret whatever it looks like. */
export function isSecretKey(key: string): boolean {
  return SECRET_WORD.test(key) && !NAMES_A_SECRET.test(key);
}

const CERTAIN_FORMS: readonly RegExp[] = [
  /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/i,
  /^K10.*::|::server:/,
  /\b[a-z0-9]{6}\.[a-z0-9]{16}\b/,
  /\beyJ[\w-]{8,}\./,
  /-----BEGIN/,
  /\/\/[^/\s]*:[^/\s]*@/,
];

const LIKELY_FORMS: readonly RegExp[] = [
  /^K10|::/,
  /\/\/[^/]*@/,
  /[!@][^=]*=/,
  // Long and mixed: an encoded key rather than a word.
  /(?=[^\s]*\d)(?=[^\s]*[A-Za-z])[A-Za-z0-9+/=_.~-]{20,}/,
  /[^\s]{40,}/,
];

/** Can hardly be anything else: a token's UUID, a join token, a private key, a URL with a password. */
export function hasTokenFormat(text: string): boolean {
  return CERTAIN_FORMS.some((form) => form.test(text));
}

/** Has the form of a token, a key or a URL with a password. */
export function mayBeToken(text: string): boolean {
  return hasTokenFormat(text) || LIKELY_FORMS.some((form) => form.test(text));
}

export function mayBeSecret(text: string): boolean {
  return SECRET_WORD.test(text) || mayBeToken(text);
}

const NOT_SHOWN = '(not shown)';

/** Whether a key may be named in a message: keys can be secrets too, `: ` in a wrong place makes one. */
export function canShowKey(key: string): boolean {
  return key.length <= 64 && !mayBeToken(key) && !hasControlCharacter(key);
}

/** A key in a message. */
export function quoteKey(key: string): string {
  return canShowKey(key) ? `'${key}'` : NOT_SHOWN;
}

/** Whether a value may be named in a message. */
export function canShowValue(value: string): boolean {
  return canShowKey(value) && !mayBeSecret(value);
}

/** A value in a message, such as the name of an image that is not there. */
export function quoteValue(value: string): string {
  return canShowValue(value) ? `'${value}'` : NOT_SHOWN;
}

function hasControlCharacter(text: string): boolean {
  return /\p{Cc}/u.test(text);
}

/**
 * A parser's problem may quote the value it refused. An amount (`5gb`) may be shown; of anything else only
 * what is said about it.
 */
export function removeQuotedValue(problem: string, value: unknown): string {
  if (typeof value !== 'string' || /^[\d.]{1,8}\s?[A-Za-z]{0,8}$/.test(value)) return problem;
  if (value === '') return problem;
  const parts = problem.replaceAll(/ ?'([^']*)'/g, (whole, part: string) =>
    part.length > 2 && value.includes(part) ? '' : whole,
  );
  return (value.length > 2 ? parts.replaceAll(value, '…') : parts).trimStart();
}
