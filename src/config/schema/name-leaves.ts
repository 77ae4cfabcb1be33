// SPDX-License-Identifier: Apache-2.0
// Leaf values that are names: Kubernetes, Proxmox and file names.
import * as z from 'zod';
import { parseLabelKey, parseLabelValue } from '../../model/labels.ts';
import { parseDnsLabel, parseDnsSubdomain, parsePoolName } from '../../model/names.ts';
import { accepted, type Parsed, refused } from '../../model/parsed.ts';

import { textLeaf } from './leaf.ts';

const TEXT = { type: 'string', minLength: 1 } as const;

/** Any text that is not blank. */
export function nonEmptyText() {
  return textLeaf({ type: 'text', json: TEXT }, (value) => checkPattern(value, /\S/, 'is empty'));
}

/** A file or folder; `~/` is the home folder. */
export function filePath() {
  return textLeaf({ type: 'path', json: TEXT }, (value) =>
    checkPattern(value, /^[^\0\n]*\S[^\0\n]*$/, 'is not a path'),
  );
}

export function poolName() {
  return textLeaf(
    {
      type: 'pool name',
      json: { type: 'string', pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$', maxLength: 54 },
      quotes: true,
    },
    parsePoolName,
  );
}

export const ENTRY_NAME = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;

/** Name of a region, image, template or size. It is used in provider ids, labels and flags. */
export function entryName() {
  return z.string().regex(ENTRY_NAME).meta({ 'x-type': 'name' });
}

export function namespace() {
  return textLeaf({ type: 'namespace', json: TEXT, quotes: true }, parseDnsLabel);
}

/** Part of ownership markers and of the names of seed files; a uid fits. */
export function clusterId() {
  return textLeaf({ type: 'id', json: TEXT, quotes: true }, parseDnsLabel);
}

/**
 * A DNS name, also as prefix of a node name. Dots are allowed (`autoscaler.node-1`): Kubernetes accepts any
 * DNS name.
 */
export function dnsName() {
  return textLeaf({ type: 'DNS name', json: TEXT, quotes: true }, parseDnsSubdomain);
}

export function labelKey() {
  return textLeaf({ type: 'label key', json: TEXT, quotes: true }, parseLabelKey);
}

export function labelValue() {
  return textLeaf({ type: 'label value', json: { type: 'string' }, quotes: true }, parseLabelValue);
}

/** An extended resource such as `example.com/device`, or huge pages. */
export function extendedResource() {
  return textLeaf(
    { type: 'resource name', json: { type: 'string', pattern: '/|^hugepages-' }, quotes: true },
    (value) => {
      const parsed = parseLabelKey(value);
      if (!parsed.ok || /^hugepages-./.test(value)) return parsed;
      const domain = value.includes('/') ? value.replace(/\/.*/, '') : '';
      return domain === '' || /(^|\.)kubernetes\.io$/.test(domain)
        ? refused(
            "is not an extended resource; its name needs a domain, such as 'example.com/device'",
          )
        : parsed;
    },
  );
}

/** Proxmox lower-cases tags and splits them at blanks, commas and semicolons. */
export function tag() {
  return textLeaf(
    { type: 'tag', json: { type: 'string', pattern: '^[a-z0-9_][a-z0-9_+.-]*$' } },
    (value) =>
      checkPattern(
        value,
        /^[a-z0-9_][a-z0-9_+.-]{0,123}$/,
        "is not a valid Proxmox tag; use lower-case letters, digits, '_', '+', '.' and '-', and start with a letter, digit or '_'",
      ),
  );
}

/** Name of a Proxmox node: a host name without domain. */
export function proxmoxHost() {
  return textLeaf({ type: 'Proxmox node', json: TEXT }, (value) =>
    checkPattern(
      value,
      /^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/,
      'is not a valid Proxmox node name; write the name shown in the Proxmox web interface, without a domain',
    ),
  );
}

/** An SSH host: a DNS name or an IP address, with a port if it is not the default one. */
export function sshHost() {
  return textLeaf({ type: 'host', json: TEXT }, (value) =>
    checkPattern(
      value,
      /^([A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?|\[[0-9A-Fa-f.:]+\]:\d{1,5})$/,
      'is not a host name or address, with or without a port',
    ),
  );
}

export function storageId() {
  return textLeaf({ type: 'storage', json: TEXT }, (value) =>
    checkPattern(value, /^[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]$/, 'is not a Proxmox storage id'),
  );
}

export function bridge() {
  return textLeaf({ type: 'bridge', json: TEXT }, (value) =>
    checkPattern(
      value,
      /^[A-Za-z][A-Za-z0-9_.]{0,14}$/,
      'is not a valid bridge name; use at most 15 letters, digits, dots and underscores',
    ),
  );
}

export function resourcePoolId() {
  return textLeaf({ type: 'Proxmox pool', json: TEXT }, (value) =>
    checkPattern(
      value,
      /^[A-Za-z0-9_-]+(\/[A-Za-z0-9_-]+){0,2}$/,
      'is not a Proxmox resource pool',
    ),
  );
}

/** `user@realm`. */
export function proxmoxUser() {
  return textLeaf(
    { type: 'user@realm', json: { type: 'string', pattern: '^[^@!]+@[^@!]+$' } },
    (value) =>
      checkPattern(
        value,
        /^[^\s:/@!=]+@[A-Za-z][A-Za-z0-9._-]*$/,
        "must have the form 'user@realm'",
      ),
  );
}

/** `user@realm!name`. Users may paste the whole `id=secret` line, so the message must not quote the value. */
export function tokenId() {
  return textLeaf(
    { type: 'user@realm!name', json: { type: 'string', pattern: '^[^@!=]+@[^@!=]+![^@!=]+$' } },
    (value) =>
      value.includes('=')
        ? refused(
            "contains more than the token id; write only 'user@realm!name' and name the secret with secretFile",
          )
        : checkPattern(
            value,
            /^[^\s:/@!]+@[A-Za-z][A-Za-z0-9._-]*![A-Za-z][A-Za-z0-9._-]*$/,
            "must have the form 'user@realm!name'",
          ),
  );
}

/** A Unix user, also for SSH logins. */
export function unixUser() {
  return textLeaf({ type: 'user', json: TEXT }, (value) =>
    checkPattern(value, /^[a-z_][a-z0-9_-]{0,31}$/, 'is not a user name'),
  );
}

/** Checks the value against a pattern. The message never repeats the value. */
export function checkPattern(value: string, form: RegExp, problem: string): Parsed<string> {
  return form.test(value) ? accepted(value) : refused(problem);
}

export function guestPath() {
  return textLeaf({ type: 'absolute path', json: { type: 'string', pattern: '^/' } }, (value) =>
    checkPattern(value, /^\/[^\0\n]+$/, 'must be an absolute path in the guest'),
  );
}

export function octalMode() {
  return textLeaf(
    { type: 'octal mode', json: { type: 'string', pattern: '^0?[0-7]{3,4}$' } },
    (value) =>
      checkPattern(value, /^0?[0-7]{3,4}$/, "must be an octal mode in quotes, such as '0644'"),
  );
}

/** One word for apt: `htop`, `kubelet=1.34.2-1.1`, `libc6:arm64`, `nginx/stable`. */
export function aptPackage() {
  return textLeaf({ type: 'package', json: { type: 'string' } }, (value) =>
    checkPattern(
      value,
      /^[a-z0-9][a-z0-9+.-]*(:[a-z0-9-]+)?([=/][A-Za-z0-9.+:~*-]+)?$/,
      'must be the name of one package, with or without a version: htop, or htop=3.0.5-7',
    ),
  );
}

/** A line of sources.list without `deb` and options. */
export function aptSource() {
  return textLeaf({ type: 'package source', json: { type: 'string' } }, (value) =>
    checkPattern(
      value,
      /^https?:\/\/\S+( +\S+)+$/,
      "must be URL, suite and components without 'deb', such as https://download.docker.com/linux/ubuntu jammy stable",
    ),
  );
}
