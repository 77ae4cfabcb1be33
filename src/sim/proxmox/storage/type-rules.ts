// SPDX-License-Identifier: Apache-2.0
// Options and content types of each storage type. Types without rules accept what the API schema accepts.
import type { StorageType } from '../state/cluster-description.ts';

export interface StorageTypeRules {
  /** Required on creation and immutable afterwards. */
  readonly fixed: readonly string[];
  readonly optional: readonly string[];
  readonly contents: readonly string[];
  readonly defaultContent: readonly string[];
}

const EVERYWHERE = ['nodes', 'disable', 'content', 'bwlimit'];
const FILES = [
  ...EVERYWHERE,
  'format',
  'preallocation',
  'mkdir',
  'create-base-path',
  'create-subdirs',
  'content-dirs',
  'maxfiles',
  'prune-backups',
  'max-protected-backups',
  'snapshot-as-volume-chain',
];
const FILE_CONTENTS = ['images', 'rootdir', 'vztmpl', 'iso', 'backup', 'snippets', 'import'];
const DISKS = ['images', 'rootdir'];

export const STORAGE_TYPE_RULES: Readonly<Partial<Record<StorageType, StorageTypeRules>>> = {
  dir: {
    fixed: ['path'],
    optional: [...FILES, 'shared', 'is_mountpoint'],
    contents: [...FILE_CONTENTS, 'none'],
    defaultContent: DISKS,
  },
  btrfs: {
    fixed: ['path'],
    optional: [...FILES, 'shared', 'is_mountpoint', 'nocow'],
    contents: [...FILE_CONTENTS, 'none'],
    defaultContent: DISKS,
  },
  nfs: {
    fixed: ['path', 'server', 'export'],
    optional: [...FILES, 'options'],
    contents: FILE_CONTENTS,
    defaultContent: ['images'],
  },
  cifs: {
    fixed: ['path', 'server', 'share'],
    optional: [...FILES, 'options', 'username', 'password', 'domain', 'smbversion', 'subdir'],
    contents: FILE_CONTENTS,
    defaultContent: ['images'],
  },
  lvm: {
    fixed: ['vgname'],
    optional: [...EVERYWHERE, 'shared', 'saferemove', 'saferemove_throughput', 'tagged_only'],
    contents: DISKS,
    defaultContent: ['images'],
  },
  lvmthin: {
    fixed: ['thinpool', 'vgname'],
    optional: EVERYWHERE,
    contents: DISKS,
    defaultContent: DISKS,
  },
  zfspool: {
    fixed: ['pool'],
    optional: [...EVERYWHERE, 'blocksize', 'sparse', 'mountpoint'],
    contents: DISKS,
    defaultContent: DISKS,
  },
};
