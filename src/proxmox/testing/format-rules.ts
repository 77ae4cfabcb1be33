// SPDX-License-Identifier: Apache-2.0
// Checks the formats of parameter values. Other formats are not checked.
import { isIP, isIPv4, isIPv6 } from 'node:net';
import { NAMED_FORMATS, NEW_DISK } from '../wire-facts/index.ts';

/** Returns the error text without its last line break; undefined if the value is valid. */
type FormatRule = (text: string) => string | undefined;

function namedFormat(name: string): FormatRule {
  const fact = NAMED_FORMATS[name];
  return (text) =>
    fact === undefined || fact.regex.test(text)
      ? undefined
      : fact.error.trimEnd().replaceAll('<value>', text);
}

function refuseUnless(good: (text: string) => boolean, refusal: string): FormatRule {
  return (text) => (good(text) ? undefined : refusal);
}

function isCidr(text: string, isAddress: (text: string) => boolean, maxPrefix: number): boolean {
  const [address = '', bits = '', ...rest] = text.split('/');
  const isPrefix = /^\d+$/.test(bits) && Number(bits) >= 8 && Number(bits) <= maxPrefix;
  return rest.length === 0 && isAddress(address) && isPrefix;
}

const isIpv4Cidr = (text: string) => isCidr(text, isIPv4, 32);
const isIpv6Cidr = (text: string) => isCidr(text, isIPv6, 128);
const volumeId = namedFormat('pve-volume-id');

const FORMAT_RULES: Readonly<Record<string, FormatRule>> = {
  ipv4: refuseUnless(isIPv4, 'value does not look like a valid IPv4 address'),
  ipv6: refuseUnless(isIPv6, 'value does not look like a valid IPv6 address'),
  ip: refuseUnless((text) => isIP(text) !== 0, 'value does not look like a valid IP address'),
  'pve-ipv4-config': refuseUnless(
    (text) => ['dhcp', 'manual'].includes(text) || isIpv4Cidr(text),
    'value does not look like a valid ipv4 network configuration',
  ),
  'pve-ipv6-config': refuseUnless(
    (text) => ['auto', 'dhcp', 'manual'].includes(text) || isIpv6Cidr(text),
    'value does not look like a valid ipv6 network configuration',
  ),
  address: (text) =>
    isIP(text) === 0 && namedFormat('dns-name')(text) !== undefined
      ? `value does not look like a valid address: ${text}`
      : undefined,
  // The texts of 9.2; 8.4 says of a short id that it contains illegal characters.
  'pve-storage-id': (text) =>
    text.length < 2
      ? `storage ID '${text}' cannot be shorter than 2 characters`
      : namedFormat('pve-storage-id')(text),
  'pve-poolid': (text) =>
    (text.replace(/\/+$/, '').match(/\//g)?.length ?? 0) > 2
      ? `pool name '${text}' nested too deeply (max levels = 3)`
      : namedFormat('pve-poolid')(text),
  'pve-volume-id-or-qm-path': (text) =>
    ['none', 'cdrom', 'cloudinit'].includes(text) || text.startsWith('/') || NEW_DISK.test(text)
      ? undefined
      : volumeId(text),
  'pve-volume-id-or-absolute-path': (text) => (text.startsWith('/') ? undefined : volumeId(text)),
};

export function findFormatRule(format: string): FormatRule | undefined {
  const own =
    FORMAT_RULES[format] ??
    (Object.hasOwn(NAMED_FORMATS, format) ? namedFormat(format) : undefined);
  if (own !== undefined) return own;
  const [, base = '', kind] = /^(.*)-(list|opt)$/.exec(format) ?? [];
  const rule = kind === undefined ? undefined : findFormatRule(base);
  if (rule === undefined) return undefined;
  if (kind === 'opt') return (text) => (text === '' || text === '0' ? undefined : rule(text));
  return (text) =>
    text
      // oxlint-disable-next-line no-control-regex -- NUL is a separator too
      .split(/[,;\s\0]+/)
      .filter((part) => part !== '')
      .flatMap((part) => rule(part) ?? [])[0];
}
