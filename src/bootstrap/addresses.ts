// SPDX-License-Identifier: Apache-2.0
// Validation of IP addresses that are written into a guest.

const OCTET = '(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
const V4 = new RegExp(`^${OCTET}(\\.${OCTET}){3}$`);

export type Family = 4 | 6;

export function isAddress(text: string, family: Family): boolean {
  return family === 4 ? V4.test(text) : isV6(text);
}

/** Uses the IPv6 parser of the URL standard. */
function isV6(text: string): boolean {
  return /^[0-9A-Fa-f:.]+$/.test(text) && text.includes(':') && URL.canParse(`http://[${text}]/`);
}

/** `address/prefix`. */
export function isCidr(text: string, family: Family): boolean {
  const [address = '', prefix = '', ...more] = text.split('/');
  const longest = family === 4 ? 32 : 128;
  const isPrefix = /^(0|[1-9]\d{0,2})$/.test(prefix) && Number(prefix) <= longest;
  return more.length === 0 && isPrefix && isAddress(address, family);
}
