// SPDX-License-Identifier: Apache-2.0
import type { Host } from '../../model/host.ts';
import type { HostRefusal, RefusalReason } from './decision.ts';

export type Content = 'images' | 'import' | 'iso';

const PURPOSE: Readonly<Record<Content, string>> = {
  images: 'disks',
  import: 'images to import',
  iso: 'seeds',
};

/** Returns undefined if the host can use the storage for this content. */
export function storageProblem(
  host: Host,
  name: string,
  content: Content,
): HostRefusal | undefined {
  const storage = host.storages.find((one) => one.name === name);
  const subject = `storage ${name} for ${PURPOSE[content]}`;
  if (storage === undefined) return problem('StorageMissing', `has no ${subject}`);
  if (!storage.active) return problem('StorageInactive', `has ${subject}, but it is not active`);
  if (storage.content.includes(content)) return undefined;
  return problem(
    'StorageRefusesContent',
    `has ${subject}, but it accepts ${storage.content.toSorted().join(', ') || 'no content'} and not ${content}`,
  );

  function problem(reason: RefusalReason, problemText: string): HostRefusal {
    const message = `host ${host.name} ${problemText}`;
    return { host: host.name, reason, message, numbers: { storage: name, content } };
  }
}
