// SPDX-License-Identifier: Apache-2.0
// The system disk, from a raw `scsi0` such as `fast:48,discard=on,ssd=1`.

import type { ConfigPath } from '../../config-path.ts';
import type { NodePool, VmOption } from './node-pool.ts';

export interface SystemDisk {
  readonly sizeMiB: number | undefined;
  /** Imported from an existing volume. */
  readonly isImported: boolean;
}

const NO_DISK: SystemDisk = { sizeMiB: undefined, isImported: false };
const BOOLEAN_FLAGS: ReadonlySet<string> = new Set(['discard', 'ssd', 'iothread']);
const TRUE_VALUES: ReadonlySet<string> = new Set(['on', '1', 'yes', 'true']);

export function mapSystemDisk(pool: NodePool, option: VmOption | undefined): SystemDisk {
  if (option === undefined) return NO_DISK;
  const { context, root } = pool;
  const [volume = '', ...flags] = option.text.split(',').map((part) => part.trim());
  const [, storage, size] = /^(?:file=)?([A-Za-z][\w.-]*):(\d+(?:\.\d+)?)$/.exec(volume) ?? [];
  const path: ConfigPath = [...root, 'disk'];
  if (storage === undefined) {
    context.writer.note(
      option.tree,
      'action-required',
      'must have the form storage:size to apply to every new machine',
    );
    return NO_DISK;
  }
  context.writer.set([...path, 'storage'], storage, option.tree);
  let isImported = false;
  for (const flag of flags) {
    const [name = '', value = ''] = flag.split('=', 2);
    if (name === 'import-from') isImported = true;
    mapDiskFlag(pool, option, { name, value });
  }
  const gib = Number(size);
  return { sizeMiB: gib > 0 ? Math.ceil(gib * 1024) : undefined, isImported };
}

function mapDiskFlag(
  { context, root }: NodePool,
  option: VmOption,
  flag: { readonly name: string; readonly value: string },
): void {
  const { name, value } = flag;
  const { writer } = context;
  if (BOOLEAN_FLAGS.has(name))
    writer.set([...root, 'disk', name], TRUE_VALUES.has(value), option.tree);
  else if (name === 'cache') writer.set([...root, 'disk', 'cache'], value, option.tree);
  else if (name === 'import-from') {
    writer.note(
      option.tree,
      'action-required',
      'imports the disk from a volume; add the image by URL to `images` and set from.image',
    );
  } else writer.note(option.tree, 'not-imported', `the option ${name} has no equivalent key`);
}
