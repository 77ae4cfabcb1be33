// SPDX-License-Identifier: Apache-2.0
// Detects text that must not appear in a message. A false positive costs little: the message has the
// position of the value.

const SECRET_WORD =
  /pass(word|phrase|wd)?|pwd|secret|token|credential|(private|api|access|auth|encryption|join)[-_]?key/i;

/** Keys that refer to a secret but do not contain one. */
const NAMES_A_SECRET =
  /(File|Env|Ref|Ttl|Hashes|[-_](file|path|dir|config|ttl|webhook))$|^(secretRef|credentialsRef|publicKeys?)$/;

/** Whether the value of this key is always treated as a secret. */
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
  // Long text with letters and digits is probably an encoded key.
  /(?=[^\s]*\d)(?=[^\s]*[A-Za-z])[A-Za-z0-9+/=_.~-]{20,}/,
  /[^\s]{40,}/,
];

/** Almost certainly a secret: a token UUID, a join token, a private key, a URL with a password. */
export function hasTokenFormat(text: string): boolean {
  return CERTAIN_FORMS.some((form) => form.test(text));
}

/** Possibly a token, a key or a URL with a password. */
export function mayBeToken(text: string): boolean {
  return hasTokenFormat(text) || LIKELY_FORMS.some((form) => form.test(text));
}

export function mayBeSecret(text: string): boolean {
  return SECRET_WORD.test(text) || mayBeToken(text);
}

const NOT_SHOWN = '(not shown)';

/** Whether a message may show the key. A key can be a secret too, for example because of a misplaced `: `. */
export function canShowKey(key: string): boolean {
  return key.length <= 64 && !mayBeToken(key) && !hasControlCharacter(key);
}

/** Quotes a key for a message, or hides it. */
export function quoteKey(key: string): string {
  return canShowKey(key) ? `'${key}'` : NOT_SHOWN;
}

/** Whether a message may show the value. */
export function canShowValue(value: string): boolean {
  return canShowKey(value) && !mayBeSecret(value);
}

/** Quotes a value for a message, such as the name of an undefined image, or hides it. */
export function quoteValue(value: string): string {
  return canShowValue(value) ? `'${value}'` : NOT_SHOWN;
}

function hasControlCharacter(text: string): boolean {
  return /\p{Cc}/u.test(text);
}

/**
 * The message of a parser may quote the refused value. An amount (`5gb`) may be shown; any other value is removed
 * from the message.
 */
export function removeQuotedValue(problem: string, value: unknown): string {
  if (typeof value !== 'string' || /^[\d.]{1,8}\s?[A-Za-z]{0,8}$/.test(value)) return problem;
  if (value === '') return problem;
  const parts = problem.replaceAll(/ ?'([^']*)'/g, (whole, part: string) =>
    part.length > 2 && value.includes(part) ? '' : whole,
  );
  return (value.length > 2 ? parts.replaceAll(value, '…') : parts).trimStart();
}
