// SPDX-License-Identifier: Apache-2.0
// Masks secrets inside a longer text, such as program arguments: `--token x`, `password=x`, `joinKey=x`.
import { isSecretKey } from './detect-secret.ts';
import { MASK } from './secret.ts';

// Bounded repetition, because the text may be long.
const SECRET_NAME = '-{0,2}[\\w.-]{0,64}(?:pass|pwd|secret|token|credential|key)[\\w.-]{0,64}';
const ASSIGNED = new RegExp(`(${SECRET_NAME})(["']?(?:=|:\\s+))(\\S+)`, 'gi');
// Without a blank after the colon the text may be host:port, unless it is an option.
const OPTION = new RegExp(`(?<![\\w.-])(-${SECRET_NAME})(["']?:)(\\S+)`, 'gi');
const FOLLOWING = new RegExp(`(^${SECRET_NAME}|(?<=\\s)-${SECRET_NAME})(\\s+)(\\S+)`, 'gi');
const IN_QUERY = /([?&][^=&#]*=)[^&#]+/g;

/** Replaces possible secrets in the text with dots. */
export function maskSecrets(text: string): string {
  return text
    .replaceAll(IN_QUERY, `$1${MASK}`)
    .replaceAll(ASSIGNED, maskMatch)
    .replaceAll(OPTION, maskMatch)
    .replaceAll(FOLLOWING, maskMatch);
}

function maskMatch(whole: string, name: string, separator: string): string {
  return isSecretName(name) ? `${name}${separator}${MASK}` : whole;
}

/** Whether the next argument is a secret: after `--password`, and after `-t`, which is `--token` for k3s. */
export function isSecretOption(argument: string): boolean {
  return argument === '-t' || (/^-{1,2}[\w.-]+$/.test(argument) && isSecretName(argument));
}

/** `joinKey` names a secret; `key` alone does not, because labels and taints use it. */
function isSecretName(option: string): boolean {
  const name = option.replace(/^-+/, '');
  return isSecretKey(name) || /[\w.-]key$/i.test(name);
}
