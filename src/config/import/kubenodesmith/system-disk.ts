// SPDX-License-Identifier: Apache-2.0
// The disk, from a raw `scsi0` such as `fast:48,discard=on,ssd=1`.

import type { DraftPath } from '../ours/draft.ts';
import type { Option } from './option.ts';
import type { Pool } from './pool.ts';

export interface Disk {
  readonly sizeMiB: number | undefined;
  /** Filled from a volume that is there already. */
  readonly isImported: boolean;
}

const NONE: Disk = { sizeMiB: undefined, isImported: false };
const SWITCHES: ReadonlySet<string> = new Set(['discard', 'ssd', 'iothread']);
const ON: ReadonlySet<string> = new Set(['on', '1', 'yes', 'true']);

export function mapDisk(pool: Pool, option: Option | undefined): Disk {
  if (option === undefined) return NONE;
  const { context, root } = pool;
  const [volume = '', ...flags] = option.text.split(',').map((part) => part.trim());
  const [, storage, size] = /^(?:file=)?([A-Za-z][\w.-]*):(\d+(?:\.\d+)?)$/.exec(volume) ?? [];
  const path: DraftPath = [...root, 'disk'];
  if (storage === undefined) {
    context.work.note(
      option.tree,
      'needs-you',
      'is not of the form storage:size, so it says nothing that holds for every new machine',
    );
    return NONE;
  }
  context.work.carry([...path, 'storage'], storage, option.tree);
  let isImported = false;
  for (const flag of flags) {
    const [name = '', value = ''] = flag.split('=', 2);
    if (name === 'import-from') isImported = true;
    mapFlag(pool, option, { name, value });
  }
  const gib = Number(size);
  return { sizeMiB: gib > 0 ? Math.ceil(gib * 1024) : undefined, isImported };
}

function mapFlag(
  { context, root }: Pool,
  option: Option,
  flag: { readonly name: string; readonly value: string },
): void {
  const { name, value } = flag;
  const { work } = context;
  if (SWITCHES.has(name)) work.carry([...root, 'disk', name], ON.has(value), option.tree);
  else if (name === 'cache') work.carry([...root, 'disk', 'cache'], value, option.tree);
  else if (name === 'import-from') {
    work.note(
      option.tree,
      'needs-you',
      'fills the disk from a volume: name the image under `images`, by its URL, and write from.image',
    );
  } else work.note(option.tree, 'not-carried', `its part ${name} has no home here`);
}
