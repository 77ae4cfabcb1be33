// SPDX-License-Identifier: Apache-2.0
// The formats of parameter values. One that is not here is not judged.
import { isIP, isIPv4, isIPv6 } from 'node:net';
import { NAMED_FORMATS, NEW_DISK } from '../wire-facts/index.ts';

/** The text of the refusal, without its last line break; undefined = it is well formed. */
type Rule = (text: string) => string | undefined;

function named(name: string): Rule {
  const fact = NAMED_FORMATS[name];
  return (text) =>
    fact === undefined || fact.regex.test(text)
      ? undefined
      : fact.error.trimEnd().replaceAll('<value>', text);
}

function unless(good: (text: string) => boolean, refusal: string): Rule {
  return (text) => (good(text) ? undefined : refusal);
}

function isNetwork(text: string, isAddress: (text: string) => boolean, most: number): boolean {
  const [address = '', bits = '', ...rest] = text.split('/');
  const isPrefix = /^\d+$/.test(bits) && Number(bits) >= 8 && Number(bits) <= most;
  return rest.length === 0 && isAddress(address) && isPrefix;
}

const isV4Network = (text: string) => isNetwork(text, isIPv4, 32);
const isV6Network = (text: string) => isNetwork(text, isIPv6, 128);
const volumeId = named('pve-volume-id');

const RULES: Readonly<Record<string, Rule>> = {
  ipv4: unless(isIPv4, 'value does not look like a valid IPv4 address'),
  ipv6: unless(isIPv6, 'value does not look like a valid IPv6 address'),
  ip: unless((text) => isIP(text) !== 0, 'value does not look like a valid IP address'),
  'pve-ipv4-config': unless(
    (text) => ['dhcp', 'manual'].includes(text) || isV4Network(text),
    'value does not look like a valid ipv4 network configuration',
  ),
  'pve-ipv6-config': unless(
    (text) => ['auto', 'dhcp', 'manual'].includes(text) || isV6Network(text),
    'value does not look like a valid ipv6 network configuration',
  ),
  address: (text) =>
    isIP(text) === 0 && named('dns-name')(text) !== undefined
      ? `value does not look like a valid address: ${text}`
      : undefined,
  'pve-volume-id-or-qm-path': (text) =>
    ['none', 'cdrom', 'cloudinit'].includes(text) || text.startsWith('/') || NEW_DISK.test(text)
      ? undefined
      : volumeId(text),
  'pve-volume-id-or-absolute-path': (text) => (text.startsWith('/') ? undefined : volumeId(text)),
};

export function ruleOf(format: string): Rule | undefined {
  const own = RULES[format] ?? (Object.hasOwn(NAMED_FORMATS, format) ? named(format) : undefined);
  if (own !== undefined) return own;
  const [, base = '', kind] = /^(.*)-(list|opt)$/.exec(format) ?? [];
  const rule = kind === undefined ? undefined : ruleOf(base);
  if (rule === undefined) return undefined;
  if (kind === 'opt') return (text) => (text === '' || text === '0' ? undefined : rule(text));
  return (text) =>
    text
      // oxlint-disable-next-line no-control-regex -- NUL separates too
      .split(/[,;\s\0]+/)
      .filter((part) => part !== '')
      .flatMap((part) => rule(part) ?? [])[0];
}
