// SPDX-License-Identifier: Apache-2.0
// What machines are created from: checksum lists, images and templates.
import type { Config, ImageConfig, TemplateConfig } from '../config/index.ts';
import { formatBytes } from '../model/format-text.ts';
import type { Host } from '../model/host.ts';
import type { RegionView } from '../ports/hypervisor.ts';
import { findChecksum } from '../setup/index.ts';
import { type Check, failure, type Outcome, ok, skipped, warning } from './check.ts';
import type { DoctorContext } from './context.ts';
import { type RegionReader, unique } from './region-reader.ts';

function imagesOf({ images, templates, pools }: Config): readonly ImageConfig[] {
  const names = pools.flatMap(({ from }) => {
    if (from.kind === 'image') return [from.image];
    const image = from.kind === 'template' ? templates[from.template]?.image : undefined;
    return image === undefined ? [] : [image];
  });
  return unique(names).flatMap((name) => images[name] ?? []);
}

export function checksumChecks({ adapters }: DoctorContext, config: Config): readonly Check[] {
  return imagesOf(config).map((image) => ({
    name: 'checksum-list',
    group: 'config',
    subject: `images.${image.name}`,
    run: async () => {
      const { checksumUrl, checksum } = image;
      if (checksum !== undefined) return ok('the checksum is in the config');
      if (checksumUrl === undefined) {
        return warning(
          'the image is not verified: it has neither checksum nor checksumUrl',
          `Set images.${image.name}.checksumUrl to the publisher's SHA256SUMS.`,
        );
      }
      const found = findChecksum(await adapters.readUrl(checksumUrl), image);
      return ok(`${found.algorithm} ${found.hex.slice(0, 12)}… in ${checksumUrl}`);
    },
  }));
}

/** Images of the pools on a host: already there, or the host can download them. */
export function imageChecks(reader: RegionReader, host: string, group: string): readonly Check[] {
  const { config, region } = reader;
  const names = reader
    .poolsOn(host)
    .flatMap(({ from }) => (from.kind === 'image' ? [from.image] : []));
  return unique(names).flatMap((name) => {
    const image = config.images[name];
    if (image === undefined) return [];
    const check: Check = {
      name: 'image',
      group,
      subject: name,
      run: async (signal) => {
        const inspector = await reader.inspector();
        const { images: storage } = region.storage;
        if (image.checksum !== undefined) {
          const digits = `-${image.checksum.hex.slice(0, 12)}.`;
          const volumes = await inspector.hypervisor.volumes(host, storage, 'import', { signal });
          if (volumes.some((volume) => volume.name.includes(digits))) return ok(`is on ${storage}`);
        }
        const { bytes } = await inspector.urlInfo(host, image, { signal });
        const size = bytes === undefined ? '' : `, ${formatBytes(bytes)}`;
        return ok(`${host} can download it${size}`);
      },
    };
    return [check];
  });
}

/** Templates of the pools: on the host itself, or on shared storage. */
export function templateChecks(
  reader: RegionReader,
  { host, view, group }: { readonly host: Host; readonly view: RegionView; readonly group: string },
): readonly Check[] {
  const keys = reader
    .poolsOn(host.name)
    .flatMap(({ from }) => (from.kind === 'template' ? [from.template] : []));
  return unique(keys).flatMap((key) => {
    const template = reader.config.templates[key];
    if (template === undefined) return [];
    const check: Check = {
      name: 'template',
      group,
      subject: key,
      run: (signal) => judgeTemplate(reader, { template, host, view, signal }),
    };
    return [check];
  });
}

interface TemplateOnHost {
  readonly template: TemplateConfig;
  readonly host: Host;
  readonly view: RegionView;
  readonly signal: AbortSignal;
}

async function judgeTemplate(
  reader: RegionReader,
  { template, host, view, signal }: TemplateOnHost,
): Promise<Outcome> {
  const { hypervisor } = await reader.inspector();
  const wanted = describe(template, host.name);
  const matches = view.vms.filter((vm) => isMatch(template, vm));
  const found = matches.filter(({ isTemplate }) => isTemplate);
  if (found.length === 0) {
    const [plain] = matches;
    return failure(
      plain === undefined ? `there is no template ${wanted}` : `VM ${plain.vmId} is not a template`,
      plain === undefined
        ? `Create it, or correct templates.${template.key}.`
        : `Convert it: qm template ${plain.vmId}`,
    );
  }
  if (found.some((vm) => vm.host === host.name)) return ok(`${wanted} is on ${host.name}`);
  const [other] = found;
  if (other === undefined) return skipped('it is not there');
  const { bootDisk } = await hypervisor.vmConfig(other, { signal });
  const storage = host.storages.find(({ name }) => name === bootDisk?.storage);
  if (storage?.shared === true) return ok(`${wanted} is on shared storage`);
  return failure(
    `${wanted} is only on ${other.host}, and its disk on the local storage ${bootDisk?.storage ?? '-'}: ${host.name} cannot clone it`,
    'Create the template on this host too (templates.NAME.id takes an id per host), move its disk to shared storage, or deny the host for the pool.',
  );
}

type Vm = RegionView['vms'][number];

function isMatch({ id, idByHost, name }: TemplateConfig, vm: Vm): boolean {
  if (id !== undefined) return vm.vmId === id;
  if (Object.keys(idByHost).length > 0) return idByHost[vm.host] === vm.vmId;
  return vm.name === name;
}

function describe({ id, idByHost, name }: TemplateConfig, host: string): string {
  const chosen = id ?? idByHost[host];
  return chosen === undefined ? (name ?? '-') : String(chosen);
}
