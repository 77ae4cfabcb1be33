// SPDX-License-Identifier: Apache-2.0
// The ways in which a disk could be made on a host: onto which storage, from which template.
import type { Host } from '../../model/host.ts';
import { byName, type Refusal, type RefusalReason } from './decision.ts';
import type { PlacementRequest, Source, Template } from './request.ts';
import { storageProblem } from './storage-problem.ts';

export interface Way {
  readonly storage: string;
  readonly template?: Template;
}

/** No way comes with at least one problem; a way may come with problems of the others. */
export interface Ways {
  readonly ways: readonly Way[];
  readonly problems: readonly Refusal[];
}

type TemplateSource = Extract<Source, { kind: 'template' }>;
type ImageSource = Extract<Source, { kind: 'image' }>;

export function waysOnto(host: Host, request: PlacementRequest, hosts: readonly Host[]): Ways {
  const { source, storages } = request;
  const plain = storages.map((storage) => ({ storage }));
  switch (source.kind) {
    case 'netboot':
      return onto(host, plain);
    case 'image': {
      const problem = imageProblem(host, source);
      return problem === undefined ? onto(host, plain) : { ways: [], problems: [problem] };
    }
    case 'template': {
      const usable = usableTemplates(host, source, hosts);
      return usable.length === 0
        ? { ways: [], problems: [templateMissing(host, source)] }
        : onto(host, source.clone === 'linked' ? linkedWays(usable) : fullWays(usable, storages));
    }
  }
}

function linkedWays(usable: readonly Template[]): readonly Way[] {
  return usable.map((template) => ({ storage: template.storage, template }));
}

function fullWays(usable: readonly Template[], storages: readonly string[]): readonly Way[] {
  return usable
    .slice(0, 1)
    .flatMap((template) => storages.map((storage) => ({ storage, template })));
}

function onto(host: Host, wanted: readonly Way[]): Ways {
  const checked = wanted.map((way) => ({
    way,
    problem: storageProblem(host, way.storage, 'images'),
  }));
  return {
    ways: checked.flatMap(({ way, problem }) => (problem === undefined ? [way] : [])),
    problems: checked.flatMap(({ problem }) => problem ?? []),
  };
}

function imageProblem(host: Host, { storage, presentOn }: ImageSource): Refusal | undefined {
  const problem = storageProblem(host, storage, 'import');
  if (problem !== undefined) return problem;
  if (presentOn === undefined || presentOn.includes(host.name)) return undefined;
  return sourceMissing(host, 'ImageMissing', {
    sentence: `host ${host.name} does not have the image on storage ${storage}`,
    numbers: { storage },
  });
}

/** The nearest first: one of the host itself needs no way over the network; then the lowest VM id. */
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

function templateMissing(host: Host, { templates }: TemplateSource): Refusal {
  const where = templates.map((one) => `${one.vmId} on ${one.host} (${one.storage})`);
  const elsewhere = where.length === 0 ? 'nor has any other' : `there is ${listed(where)}`;
  return sourceMissing(host, 'TemplateMissing', {
    sentence: `host ${host.name} has no template to clone, neither its own nor on shared storage; ${elsewhere}`,
    numbers: { templates: listed(where) },
  });
}

function listed(words: readonly string[]): string {
  return words.toSorted(byName).join(', ');
}

function sourceMissing(
  host: Host,
  reason: RefusalReason,
  words: Pick<Refusal, 'sentence' | 'numbers'>,
): Refusal {
  return { host: host.name, reason, ...words };
}
