// SPDX-License-Identifier: Apache-2.0
// vm.config.yml: VMs made by hand. Our file describes kinds of machines, not single ones, so what all of them
// share is carried over and each VM is noted.

import type { Context } from '../context.ts';
import { Section, type Tree } from '../source/tree.ts';
import { carryPrivateKey, carrySshUrl, givenName, notePassword } from './shared.ts';

const BY_HAND = 'belongs to one VM: say it when you make that VM by `pvescaler vm create`';

export function mapVmFile(context: Context, root: Section): void {
  const { work, read } = context;
  read.expect(root.find('proxmox'), 'map');
  read.expect(root.find('vms'), 'list');
  const proxmox = root.section('proxmox');
  carrySshUrl(context, proxmox, 'ssh_url');
  carryPrivateKey(context, proxmox, 'key_path');
  notePassword(context, proxmox);
  const storage = proxmox.find('storage');
  if (storage !== undefined)
    work.note(
      storage,
      'ignored-by-them',
      'is read and then not used: clones stay on the storage of the template',
    );
  const vms = root.items('vms').map((item) => new Section(item.path, item));
  mapTemplates(context, vms);
  mapUser(context, vms);
  mapKeyFiles(context, vms);
  for (const vm of vms) noteVm(context, vm);
  for (const section of [root, proxmox]) read.unknown(section, 'ignored-by-them', 'is not read');
}

function mapTemplates({ work, read }: Context, vms: readonly Section[]): void {
  const seen = new Set<string>();
  for (const vm of vms) {
    const tree = vm.find('template_name');
    const name = read.text(tree);
    if (tree === undefined || name === undefined) continue;
    if (!seen.has(name)) work.carry(['templates', givenName(name, 'template'), 'name'], name, tree);
    seen.add(name);
  }
}

/** One user for all machines here; the first VM's wins. */
function mapUser({ work, read }: Context, vms: readonly Section[]): void {
  const users = vms.flatMap((vm) => textOf(read, vm, 'ciuser'));
  const [first] = users;
  if (first === undefined) return;
  work.carry(['ssh', 'user'], first.text, first.tree);
  for (const { text, tree } of users) {
    if (text !== first.text)
      work.note(
        tree,
        'needs-you',
        'differs from the user of the first VM; here one user holds for all machines',
      );
  }
}

function mapKeyFiles({ work, read }: Context, vms: readonly Section[]): void {
  const files = vms.flatMap((vm) => textOf(read, vm, 'ssh_key_file'));
  const names = [...new Set(files.map(({ text }) => text))];
  const [first] = files;
  if (first === undefined) return;
  work.carry(['ssh', 'publicKeyFiles'], names, first.tree);
  if (names.length > 1)
    work.note(first.tree, 'carried-differently', 'here every machine lets in all the keys');
}

function textOf(
  read: Context['read'],
  vm: Section,
  key: string,
): readonly { readonly tree: Tree; readonly text: string }[] {
  const tree = vm.find(key);
  const text = read.text(tree);
  return tree === undefined || text === undefined ? [] : [{ tree, text }];
}

const NOTES = {
  vmid: BY_HAND,
  vm_name: BY_HAND,
  force: 'an existing VM is never destroyed to make room for a new one',
  start: 'a new VM is always started',
  guest_agent: 'the guest agent is always on',
} as const;

function noteVm({ work, read }: Context, vm: Section): void {
  for (const [key, message] of Object.entries(NOTES)) {
    const tree = vm.find(key);
    if (tree !== undefined) work.note(tree, 'not-carried', message);
  }
  read.unknown(vm, 'ignored-by-them', 'is not read');
}
