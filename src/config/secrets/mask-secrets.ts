// SPDX-License-Identifier: Apache-2.0
// Secrets inside a longer text, such as the arguments of a program: `--token x`, `password=x`, `joinKey=x`.
import { isSecretKey } from './detect-secret.ts';
import { MASK } from './secret.ts';

// Bounded: a text may be long.
const SECRET_NAME = '-{0,2}[\\w.-]{0,64}(?:pass|pwd|secret|token|credential|key)[\\w.-]{0,64}';
const ASSIGNED = new RegExp(`(${SECRET_NAME})(["']?(?:=|:\\s+))(\\S+)`, 'gi');
// Without a blank behind the colon it may be a host and its port, unless it is an option.
const OPTION = new RegExp(`(?<![\\w.-])(-${SECRET_NAME})(["']?:)(\\S+)`, 'gi');
const FOLLOWING = new RegExp(`(^${SECRET_NAME}|(?<=\\s)-${SECRET_NAME})(\\s+)(\\S+)`, 'gi');
const IN_QUERY = /([?&][^=&#]*=)[^&#]+/g;

/** The text with dots where a secret may be. */
export function maskSecrets(text: string): string {
  return text
    .replaceAll(IN_QUERY, `$1${MASK}`)
    .replaceAll(ASSIGNED, maskValue)
    .replaceAll(OPTION, maskValue)
    .replaceAll(FOLLOWING, maskValue);
}

function maskValue(whole: string, name: string, separator: string): string {
  return isSecretName(name) ? `${name}${separator}${MASK}` : whole;
}

/** Whether the next argument is the secret: `--password`, and `-t`, which is `--token` for k3s. */
export function isSecretOption(argument: string): boolean {
  return argument === '-t' || (/^-{1,2}[\w.-]+$/.test(argument) && isSecretName(argument));
}

/** `joinKey` is one; `key` alone is what a label or taint is called in every example. */
function isSecretName(option: string): boolean {
  const name = option.replace(/^-+/, '');
  return isSecretKey(name) || /[\w.-]key$/i.test(name);
}
