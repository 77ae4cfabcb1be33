// SPDX-License-Identifier: Apache-2.0
// What the three files have in common: hosts reached over SSH, a template, an image.

import type { ConfigPath } from '../../config-path.ts';
import { ENTRY_NAME } from '../../schema/name-leaves.ts';
import { DEFAULT_VM_ID_RANGE } from '../../values/vm-id-range.ts';
import type { ImportContext } from '../context.ts';
import { toDnsLabel } from '../output/naming.ts';
import type { SourceRef, SourceSection } from '../source/tree.ts';

export const REGION_PATH: ConfigPath = ['proxmox', 'pve'];
export const SSH_PATH: ConfigPath = [...REGION_PATH, 'transport', 'ssh'];

/** The name if it is a valid entry name, otherwise a DNS label derived from it. */
export function toEntryName(text: string, fallback: string): string {
  return ENTRY_NAME.test(text) ? text : toDnsLabel(text, fallback);
}

export function setPrivateKey(
  { writer, reader }: ImportContext,
  section: SourceSection,
  key: string,
): void {
  const tree = section.find(key);
  const file = reader.readText(tree);
  const path = [...SSH_PATH, 'privateKeyFile'];
  if (tree !== undefined && file !== undefined) writer.set(path, file, tree);
  else {
    const placeholder = {
      where: section.refTo(key),
      message: 'the private key for the Proxmox hosts',
    };
    writer.setPlaceholder(path, '~/.ssh/id_ed25519', placeholder);
  }
}

/** `ssh://user@host[:port]`. A password in the URL is neither shown nor imported. */
export function setSshUrl(
  { writer, reader }: ImportContext,
  section: SourceSection,
  key: string,
): void {
  const tree = section.find(key);
  const text = reader.readText(tree) ?? '';
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (tree === undefined || url?.protocol !== 'ssh:' || url.hostname === '') {
    const placeholder = { where: section.refTo(key), message: 'the Proxmox host to log in to' };
    writer.setPlaceholder([...SSH_PATH, 'hosts'], ['proxmox.invalid'], placeholder);
    return;
  }
  const host = url.hostname.replaceAll(/^\[|\]$/g, '');
  writer.set(
    [...SSH_PATH, 'user'],
    url.username === '' ? 'root' : decodeURIComponentSafely(url.username),
    tree,
  );
  writer.set([...SSH_PATH, 'port'], url.port === '' ? 22 : Number(url.port), tree);
  setHosts(writer, [host], tree);
  if (url.password !== '')
    writer.note(
      tree,
      'action-required',
      'contains a password; only key authentication is supported',
    );
}

function decodeURIComponentSafely(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Sets the SSH hosts, and the Proxmox node names, which are the host names without domain. */
export function setHosts(
  writer: ImportContext['writer'],
  hosts: readonly string[],
  where: SourceRef,
): void {
  writer.set([...SSH_PATH, 'hosts'], hosts, where);
  const isAddress = (host: string) => /^[\d.]+$/.test(host) || host.includes(':');
  if (hosts.some(isAddress)) {
    writer.note(
      where,
      'action-required',
      'the Proxmox node name cannot be derived from an IP address; add the names to hosts.allow if not all hosts may be used',
    );
    return;
  }
  const names = hosts.map((host) => host.split('.')[0] ?? host);
  writer.set([...REGION_PATH, 'hosts', 'allow'], names, where);
  if (names.some((name, index) => name !== hosts[index])) {
    writer.note(
      where,
      'imported-differently',
      'hosts.allow contains the names without domain, as Proxmox uses them',
    );
  }
}

/** Sets the storage for disks. It is not used for images, because an LVM storage cannot store them. */
export function setDiskStorage(
  { writer, reader }: ImportContext,
  section: SourceSection,
  key: string,
): void {
  const tree = section.find(key);
  const storage = reader.readText(tree);
  const path = [...REGION_PATH, 'storage', 'disks'];
  if (tree !== undefined && storage !== undefined) writer.set(path, storage, tree);
  else writer.setSourceDefault(path, 'local-lvm', section.refTo(key));
}

export function notePassword({ writer }: ImportContext, section: SourceSection): void {
  const tree = section.find('password');
  if (tree === undefined) return;
  writer.note(
    tree,
    'not-imported',
    'SSH passwords are not supported; install a key on the hosts and set privateKeyFile',
  );
}

export function setUnverifiedImage(
  { writer }: ImportContext,
  name: string,
  where: SourceRef,
): void {
  writer.setFixedBehavior(['images', name, 'unverified'], true, 'does not verify the image');
  writer.note(
    where,
    'imported-differently',
    'the image is not verified; replace `unverified` with checksum or checksumUrl',
  );
}

/**
 * The template id must not be in the VM id range of machines. If it is in the default range, another range is
 * set.
 */
export function setTemplateId(
  context: ImportContext,
  template: ConfigPath,
  section: SourceSection,
): void {
  const tree = section.find('id');
  const id = context.reader.readInteger(tree);
  if (tree === undefined || id === undefined) return;
  context.writer.set([...template, 'id'], id, tree);
  if (id < DEFAULT_VM_ID_RANGE.from || id > DEFAULT_VM_ID_RANGE.to) return;
  const remark = 'the template id is in the default range, 20000-29999';
  context.writer.setOwn([...REGION_PATH, 'vmIds'], '30000-39999', remark);
}
