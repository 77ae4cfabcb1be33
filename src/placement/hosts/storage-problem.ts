// SPDX-License-Identifier: Apache-2.0
import type { Host } from '../../model/host.ts';
import type { Refusal, RefusalReason } from './decision.ts';

export type Content = 'images' | 'import' | 'iso';

const PURPOSE: Readonly<Record<Content, string>> = {
  images: 'disks',
  import: 'images to import',
  iso: 'seeds',
};

/** Undefined: the host can use the storage for that. */
export function storageProblem(host: Host, name: string, content: Content): Refusal | undefined {
  const storage = host.storages.find((one) => one.name === name);
  const subject = `storage ${name} for ${PURPOSE[content]}`;
  if (storage === undefined) return problem('StorageMissing', `has no ${subject}`);
  if (!storage.active) return problem('StorageInactive', `has ${subject}, but it is not active`);
  if (storage.content.includes(content)) return undefined;
  return problem(
    'StorageRefusesContent',
    `has ${subject}, but that takes ${storage.content.toSorted().join(', ') || 'nothing'} and not ${content}`,
  );

  function problem(reason: RefusalReason, words: string): Refusal {
    const sentence = `host ${host.name} ${words}`;
    return { host: host.name, reason, sentence, numbers: { storage: name, content } };
  }
}
