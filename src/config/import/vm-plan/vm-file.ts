// SPDX-License-Identifier: Apache-2.0
// vm.config.yml: VMs that are created manually. Our config describes kinds of machines, not single
// machines, so the settings that all VMs share are imported and each VM gets a note.

import type { ImportContext } from '../context.ts';
import { SourceSection, type SourceTree } from '../source/tree.ts';
import { notePassword, setPrivateKey, setSshUrl, toEntryName } from './shared.ts';

const SINGLE_VM_NOTE = 'belongs to a single VM; pass it to pvescaler vm create';

export function mapVmFile(context: ImportContext, root: SourceSection): void {
  const { writer, reader } = context;
  reader.expectKind(root.find('proxmox'), 'map');
  reader.expectKind(root.find('vms'), 'list');
  const proxmox = root.section('proxmox');
  setSshUrl(context, proxmox, 'ssh_url');
  setPrivateKey(context, proxmox, 'key_path');
  notePassword(context, proxmox);
  const storage = proxmox.find('storage');
  if (storage !== undefined)
    writer.note(
      storage,
      'ignored-by-source',
      'is read but not used; clones stay on the storage of the template',
    );
  const vms = root.items('vms').map((item) => new SourceSection(item.path, item));
  mapTemplates(context, vms);
  mapUser(context, vms);
  mapKeyFiles(context, vms);
  for (const vm of vms) noteVm(context, vm);
  for (const section of [root, proxmox])
    reader.noteUnreadKeys(section, 'ignored-by-source', 'is not read by the source system');
}

function mapTemplates({ writer, reader }: ImportContext, vms: readonly SourceSection[]): void {
  const seen = new Set<string>();
  for (const vm of vms) {
    const tree = vm.find('template_name');
    const name = reader.readText(tree);
    if (tree === undefined || name === undefined) continue;
    if (!seen.has(name))
      writer.set(['templates', toEntryName(name, 'template'), 'name'], name, tree);
    seen.add(name);
  }
}

/** All machines have the same user; the user of the first VM is used. */
function mapUser({ writer, reader }: ImportContext, vms: readonly SourceSection[]): void {
  const users = vms.flatMap((vm) => findText(reader, vm, 'ciuser'));
  const [first] = users;
  if (first === undefined) return;
  writer.set(['ssh', 'user'], first.text, first.tree);
  for (const { text, tree } of users) {
    if (text !== first.text)
      writer.note(
        tree,
        'action-required',
        'differs from the user of the first VM; in pvescaler all machines have the same user',
      );
  }
}

function mapKeyFiles({ writer, reader }: ImportContext, vms: readonly SourceSection[]): void {
  const files = vms.flatMap((vm) => findText(reader, vm, 'ssh_key_file'));
  const names = [...new Set(files.map(({ text }) => text))];
  const [first] = files;
  if (first === undefined) return;
  writer.set(['ssh', 'publicKeyFiles'], names, first.tree);
  if (names.length > 1)
    writer.note(first.tree, 'imported-differently', 'all keys are accepted on every machine');
}

function findText(
  reader: ImportContext['reader'],
  vm: SourceSection,
  key: string,
): readonly { readonly tree: SourceTree; readonly text: string }[] {
  const tree = vm.find(key);
  const text = reader.readText(tree);
  return tree === undefined || text === undefined ? [] : [{ tree, text }];
}

const VM_KEY_NOTES = {
  vmid: SINGLE_VM_NOTE,
  vm_name: SINGLE_VM_NOTE,
  force: 'an existing VM is never replaced by a new one',
  start: 'a new VM is always started',
  guest_agent: 'the guest agent is always enabled',
} as const;

function noteVm({ writer, reader }: ImportContext, vm: SourceSection): void {
  for (const [key, message] of Object.entries(VM_KEY_NOTES)) {
    const tree = vm.find(key);
    if (tree !== undefined) writer.note(tree, 'not-imported', message);
  }
  reader.noteUnreadKeys(vm, 'ignored-by-source', 'is not read by the source system');
}
