// SPDX-License-Identifier: Apache-2.0
// What the three files have in common: hosts reached by SSH, a template, an image.

import type { Context } from '../context.ts';
import type { DraftPath } from '../ours/draft.ts';
import { dnsLabel } from '../ours/naming.ts';
import type { Section, Where } from '../source/tree.ts';

export const REGION_PATH: DraftPath = ['proxmox', 'pve'];
export const SSH_PATH: DraftPath = [...REGION_PATH, 'transport', 'ssh'];

/** A name that may stand as a key in our file: theirs where it can. */
export function givenName(text: string, fallback: string): string {
  return /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/.test(text)
    ? text
    : dnsLabel(text, fallback);
}

export function carryPrivateKey({ work, read }: Context, section: Section, key: string): void {
  const tree = section.find(key);
  const file = read.text(tree);
  const path = [...SSH_PATH, 'privateKeyFile'];
  if (tree !== undefined && file !== undefined) work.carry(path, file, tree);
  else {
    const about = { where: section.where(key), message: 'the private key for the Proxmox hosts' };
    work.placeholder(path, '~/.ssh/id_ed25519', about);
  }
}

/** `ssh://user@host[:port]`. A password in it is not shown and not taken. */
export function carrySshUrl({ work, read }: Context, section: Section, key: string): void {
  const tree = section.find(key);
  const text = read.text(tree) ?? '';
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (tree === undefined || url?.protocol !== 'ssh:' || url.hostname === '') {
    const about = { where: section.where(key), message: 'the Proxmox host to log in to' };
    work.placeholder([...SSH_PATH, 'hosts'], ['proxmox.invalid'], about);
    return;
  }
  const host = url.hostname.replaceAll(/^\[|\]$/g, '');
  work.carry(
    [...SSH_PATH, 'user'],
    url.username === '' ? 'root' : decodeURIComponentSafely(url.username),
    tree,
  );
  work.carry([...SSH_PATH, 'port'], url.port === '' ? 22 : Number(url.port), tree);
  carryHosts(work, [host], tree);
  if (url.password !== '')
    work.note(tree, 'needs-you', 'holds a password; here only a key can log in');
}

function decodeURIComponentSafely(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The names to log in to; Proxmox itself knows its hosts by the first part of theirs. */
export function carryHosts(work: Context['work'], hosts: readonly string[], where: Where): void {
  work.carry([...SSH_PATH, 'hosts'], hosts, where);
  const isAddress = (host: string) => /^[\d.]+$/.test(host) || host.includes(':');
  if (hosts.some(isAddress)) {
    work.note(
      where,
      'needs-you',
      'an address does not tell how Proxmox names the host: write the names to hosts.allow if not all hosts may be used',
    );
    return;
  }
  const names = hosts.map((host) => host.split('.')[0] ?? host);
  work.carry([...REGION_PATH, 'hosts', 'allow'], names, where);
  if (names.some((name, index) => name !== hosts[index])) {
    work.note(
      where,
      'carried-differently',
      'Proxmox knows its hosts by their names without the domain; those were written to hosts.allow',
    );
  }
}

/** The storage of disks. Images do not go there: an LVM storage cannot hold them. */
export function carryDisks({ work, read }: Context, section: Section, key: string): void {
  const tree = section.find(key);
  const storage = read.text(tree);
  const path = [...REGION_PATH, 'storage', 'disks'];
  if (tree !== undefined && storage !== undefined) work.carry(path, storage, tree);
  else work.carryDefault(path, 'local-lvm', section.where(key));
}

export function notePassword({ work }: Context, section: Section): void {
  const tree = section.find('password');
  if (tree === undefined) return;
  work.note(
    tree,
    'not-carried',
    'a password for SSH has no home here: put a key on the hosts and name it as privateKeyFile',
  );
}

export function carryUnverifiedImage({ work }: Context, name: string, where: Where): void {
  work.carryFixed(['images', name, 'unverified'], true, 'does not check the image');
  work.note(
    where,
    'carried-differently',
    'the image is not checked until you replace `unverified` by checksum or checksumUrl',
  );
}

const OUR_IDS = { from: 20_000, to: 29_999 } as const;

/** A template's id may not lie in the range of the machines' ids; where it lies in our default, that moves. */
export function carryTemplateId(context: Context, template: DraftPath, section: Section): void {
  const tree = section.find('id');
  const id = context.read.integer(tree);
  if (tree === undefined || id === undefined) return;
  context.work.carry([...template, 'id'], id, tree);
  if (id < OUR_IDS.from || id > OUR_IDS.to) return;
  const remark = "the template's id lies in the default range, 20000-29999";
  context.work.carryOwn([...REGION_PATH, 'vmIds'], '30000-39999', remark);
}
