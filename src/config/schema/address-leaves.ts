// SPDX-License-Identifier: Apache-2.0
// Leaf values that are addresses: URLs, listen addresses, IP addresses, MAC addresses, certificate
// fingerprints, VM ids.
import * as z from 'zod';
import { accepted, type Parsed, refused } from '../../model/parsed.ts';
import { parseAddressRange, parseIpAddress } from '../values/ip-address.ts';
import { parseListenAddress } from '../values/listen-address.ts';
import { parseVmIdRange, VM_ID_MAX, VM_ID_MIN } from '../values/vm-id-range.ts';
import { textLeaf } from './leaf.ts';
import { checkPattern } from './name-leaves.ts';

/** http or https. Credentials in a URL are refused, because URLs are shown in output. */
export function url() {
  return textLeaf({ type: 'URL', json: { type: 'string', pattern: '^https?://' } }, (value) =>
    parseHttpUrl(value),
  );
}

/** A Proxmox API URL. Only https, because the token is sent in a header. */
export function apiEndpoint() {
  return textLeaf(
    { type: 'https URL', json: { type: 'string', pattern: '^https://' } },
    (value) => {
      const parsed = parseHttpUrl(value);
      if (!parsed.ok) return parsed;
      if (parsed.value.protocol !== 'https:') return refused('must start with https://');
      const isRoot = /^\/?(api2\/(json\/?)?)?$/.test(parsed.value.pathname.slice(1));
      return isRoot && parsed.value.search === ''
        ? parsed
        : refused('must not contain a path; write https://host:port');
    },
  );
}

function parseHttpUrl(value: string): Parsed<URL> {
  const parsed = URL.canParse(value) ? new URL(value) : undefined;
  if (parsed === undefined || !/^https?:$/.test(parsed.protocol) || /\s/.test(value)) {
    return refused('must be a URL that starts with http:// or https://');
  }
  return parsed.username === '' && parsed.password === ''
    ? accepted(parsed)
    : refused('must not contain a user or password; configure credentials with their own keys');
}

export function listenAddress() {
  return textLeaf(
    { type: 'listen address', json: { type: 'string', pattern: ':[0-9]{1,5}$' } },
    parseListenAddress,
  );
}

/** A listen address, or `off`. */
export function listenAddressOrOff() {
  return textLeaf(
    { type: 'listen address or `off`', json: { type: 'string', pattern: '^off$|:[0-9]{1,5}$' } },
    (value) => (value === 'off' ? accepted(value) : parseListenAddress(value)),
  );
}

export function ipAddress() {
  return textLeaf({ type: 'IP address', json: { type: 'string' } }, parseIpAddress);
}

export function addressRange() {
  return textLeaf({ type: 'address range', json: { type: 'string' } }, parseAddressRange);
}

export function macPrefix() {
  return textLeaf(
    {
      type: 'MAC prefix',
      json: { type: 'string', pattern: '^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){0,4}$' },
    },
    parseMacPrefix,
  );
}

function parseMacPrefix(value: string): Parsed<string> {
  if (!/^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){0,4}$/.test(value)) {
    return refused("must be one to five octets such as '02:00:00'");
  }
  const isMulticast = (Number.parseInt(value.slice(0, 2), 16) & 1) === 1;
  return isMulticast
    ? refused(
        'starts with an odd octet, which is a multicast address; a network card needs an even first octet',
      )
    : accepted(value);
}

/** SHA-256 fingerprint of a certificate, as Proxmox shows it. */
export function fingerprint() {
  return textLeaf(
    { type: 'SHA-256 fingerprint', json: { type: 'string', pattern: '^([0-9A-Fa-f]{2}:?){32}$' } },
    (value) =>
      checkPattern(
        value,
        /^([0-9A-Fa-f]{2}:){31}[0-9A-Fa-f]{2}$|^[0-9A-Fa-f]{64}$/,
        'must be a SHA-256 fingerprint: 32 octets in hex, with or without colons',
      ),
  );
}

/** As `ssh-keygen -l` prints it. */
export function sshFingerprint() {
  return textLeaf(
    {
      type: 'SSH key fingerprint',
      json: { type: 'string', pattern: '^SHA256:[A-Za-z0-9+/]{43}=?$' },
    },
    (value) =>
      checkPattern(
        value,
        /^SHA256:[A-Za-z0-9+/]{43}=?$/,
        'must be the fingerprint of a host key, SHA256:…, as `ssh-keygen -l` prints it',
      ),
  );
}

export function checksum() {
  return textLeaf(
    {
      type: 'checksum',
      json: { type: 'string', pattern: '^(sha256:[0-9A-Fa-f]{64}|sha512:[0-9A-Fa-f]{128})$' },
    },
    (value) =>
      checkPattern(
        value,
        /^(sha256:[0-9A-Fa-f]{64}|sha512:[0-9A-Fa-f]{128})$/,
        "must be 'sha256:' followed by 64 hex digits, or 'sha512:' followed by 128",
      ),
  );
}

export function vmIdRange() {
  return textLeaf(
    { type: 'VM id range', json: { type: 'string', pattern: '^[0-9]+-[0-9]+$' } },
    parseVmIdRange,
  );
}

export function vmId() {
  return z.int().min(VM_ID_MIN).max(VM_ID_MAX).meta({ 'x-type': 'VM id' });
}
