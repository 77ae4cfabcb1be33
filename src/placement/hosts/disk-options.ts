// SPDX-License-Identifier: Apache-2.0
// The options for creating a machine's disk on a host: target storage and source template.
import type { Host } from '../../model/host.ts';
import {
  compareNames,
  type HostRefusal,
  type PlacementRequest,
  type RefusalReason,
  type Source,
  type Template,
} from './decision.ts';

export interface DiskOption {
  readonly storage: string;
  readonly template?: Template;
}

/** Without an option there is at least one problem. With options, `problems` explains the unusable ones. */
export interface DiskOptions {
  readonly options: readonly DiskOption[];
  readonly problems: readonly HostRefusal[];
}

type TemplateSource = Extract<Source, { kind: 'template' }>;
type ImageSource = Extract<Source, { kind: 'image' }>;

export function findDiskOptions(
  host: Host,
  request: PlacementRequest,
  hosts: readonly Host[],
): DiskOptions {
  const { source, storages } = request;
  const plain = storages.map((storage) => ({ storage }));
  switch (source.kind) {
    case 'netboot':
      return usableOptions(host, plain);
    case 'image': {
      const problem = imageProblem(host, source);
      return problem === undefined
        ? usableOptions(host, plain)
        : { options: [], problems: [problem] };
    }
    case 'template': {
      const usable = usableTemplates(host, source, hosts);
      return usable.length === 0
        ? { options: [], problems: [templateMissingRefusal(host, source)] }
        : usableOptions(
            host,
            source.clone === 'linked'
              ? linkedCloneOptions(usable)
              : fullCloneOptions(usable, storages),
          );
    }
  }
}

function linkedCloneOptions(usable: readonly Template[]): readonly DiskOption[] {
  return usable.map((template) => ({ storage: template.storage, template }));
}

function fullCloneOptions(
  usable: readonly Template[],
  storages: readonly string[],
): readonly DiskOption[] {
  return usable
    .slice(0, 1)
    .flatMap((template) => storages.map((storage) => ({ storage, template })));
}

function usableOptions(host: Host, wanted: readonly DiskOption[]): DiskOptions {
  const checked = wanted.map((diskOption) => ({
    diskOption,
    problem: storageProblem(host, diskOption.storage, 'images'),
  }));
  return {
    options: checked.flatMap(({ diskOption, problem }) =>
      problem === undefined ? [diskOption] : [],
    ),
    problems: checked.flatMap(({ problem }) => problem ?? []),
  };
}

function imageProblem(host: Host, { storage, presentOn }: ImageSource): HostRefusal | undefined {
  const problem = storageProblem(host, storage, 'import');
  if (problem !== undefined) return problem;
  if (presentOn === undefined || presentOn.includes(host.name)) return undefined;
  return sourceMissingRefusal(host, 'ImageMissing', {
    message: `host ${host.name} does not have the image on storage ${storage}`,
    numbers: { storage },
  });
}

/** Nearest first: a template on the same host needs no network transfer; then by VM id. */
function usableTemplates(host: Host, source: TemplateSource, hosts: readonly Host[]) {
  const online = new Set(hosts.filter((one) => one.online).map(({ name }) => name));
  const shared = new Set(
    host.storages.filter((one) => one.shared && one.active).map(({ name }) => name),
  );
  return source.templates
    .filter((one) => one.host === host.name || (shared.has(one.storage) && online.has(one.host)))
    .toSorted(
      (left, right) =>
        Number(right.host === host.name) - Number(left.host === host.name) ||
        left.vmId - right.vmId,
    );
}

function templateMissingRefusal(host: Host, { templates }: TemplateSource): HostRefusal {
  const where = templates.map((one) => `${one.vmId} on ${one.host} (${one.storage})`);
  const elsewhere =
    where.length === 0 ? 'no other host has one either' : `templates exist: ${joinSorted(where)}`;
  return sourceMissingRefusal(host, 'TemplateMissing', {
    message: `host ${host.name} has no template to clone, neither local nor on shared storage; ${elsewhere}`,
    numbers: { templates: joinSorted(where) },
  });
}

function joinSorted(words: readonly string[]): string {
  return words.toSorted(compareNames).join(', ');
}

function sourceMissingRefusal(
  host: Host,
  reason: RefusalReason,
  words: Pick<HostRefusal, 'message' | 'numbers'>,
): HostRefusal {
  return { host: host.name, reason, ...words };
}

type Content = 'images' | 'import' | 'iso';

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
  if (storage === undefined) {
    const hidden = privilegeProblem(host, `shows no ${subject}`, {
      privilege: 'Datastore.Audit',
      path: `/storage/${name}`,
    });
    return hidden ?? problem('StorageMissing', `has no ${subject}`);
  }
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

/** Proxmox does not show what the credentials may not see. Undefined when they have the privilege. */
export function privilegeProblem(
  { name, missingPrivileges = [] }: Host,
  effect: string,
  { privilege, path }: { readonly privilege: string; readonly path: string },
): HostRefusal | undefined {
  if (!missingPrivileges.includes(`${privilege} on ${path}`)) return undefined;
  return {
    host: name,
    reason: 'PrivilegeMissing',
    message: `host ${name} ${effect}: the Proxmox credentials lack ${privilege} on ${path}`,
    numbers: { privilege, path },
  };
}
