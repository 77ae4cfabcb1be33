// SPDX-License-Identifier: Apache-2.0
// What machines are created from: checksum lists, images and templates.
import type { Config, ImageConfig, TemplateConfig } from '../config/index.ts';
import { formatBytes } from '../model/format-text.ts';
import type { Host } from '../model/host.ts';
import { findTemplates, isNamedTemplate } from '../model/role.ts';
import type { RegionView } from '../ports/hypervisor.ts';
import { findChecksum } from '../setup/index.ts';
import { type Check, failure, type Outcome, ok, warning } from './check.ts';
import type { DoctorContext } from './context.ts';
import { type RegionReader, unique } from './region-reader.ts';

/** Of the pools, of VMs created by hand, and of the templates that are built from an image. */
function imagesOf({ images, templates, pools, vms }: Config): readonly ImageConfig[] {
  const sources = [
    ...pools.map(({ from }) => from),
    ...(vms.isConfigured ? [vms.defaultSource] : []),
  ];
  const names = [
    ...sources.flatMap((from) => (from?.kind === 'image' ? [from.image] : [])),
    ...Object.values(templates).flatMap(({ image }) => image ?? []),
  ];
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

/** Images that a host needs: already there, or the host can download them. */
export function imageChecks(reader: RegionReader, host: string, group: string): readonly Check[] {
  const { config, region } = reader;
  const names = reader
    .needsOn(host)
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

/** Templates that are cloned on a host, or can be built: there, or on shared storage. */
export function templateChecks(
  reader: RegionReader,
  { host, view, group }: { readonly host: Host; readonly view: RegionView; readonly group: string },
): readonly Check[] {
  const used = reader
    .needsOn(host.name)
    .flatMap(({ from }) => (from.kind === 'template' ? [from.template] : []));
  const built = Object.values(reader.config.templates).filter(({ image }) => image !== undefined);
  const keys = [...used, ...built.map(({ key }) => key)];
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
  const { cluster } = reader.config;
  const wanted = describe(template, host.name);
  const found = findTemplates(view.vms, template, cluster.name);
  const [first] = found;
  if (first === undefined) return judgeMissing(reader, template, { wanted, view });
  const own = found.find((vm) => vm.host === host.name);
  if (own !== undefined) return ok(`VM ${own.vmId} on ${host.name}`);
  const { bootDisk } = await hypervisor.vmConfig(first, { signal });
  const storage = host.storages.find(({ name }) => name === bootDisk?.storage);
  if (storage?.shared === true) return ok(`VM ${first.vmId} on shared storage`);
  const buildIt = `pvescaler template build ${template.key} --host ${host.name}`;
  return failure(
    `${wanted} is only on ${first.host}, and its disk on the local storage ${bootDisk?.storage ?? '-'}: ${host.name} cannot clone it`,
    template.image === undefined
      ? 'Create the template on this host too (templates.NAME.id takes an id per host), move its disk to shared storage, or deny the host.'
      : `Build the template on this host too, move its disk to shared storage, or deny the host:\n${buildIt}`,
  );
}

function judgeMissing(
  { pools }: RegionReader,
  template: TemplateConfig,
  { wanted, view }: { readonly wanted: string; readonly view: RegionView },
): Outcome {
  const plain = view.vms.find((vm) => isNamedTemplate({ ...vm, isTemplate: true }, template));
  if (template.image !== undefined && plain === undefined) {
    const isOfPool = pools.some(
      ({ from }) => from.kind === 'template' && from.template === template.key,
    );
    // The first vm create builds it too, after a question.
    const judged = isOfPool ? failure : warning;
    return judged(
      `there is no template ${wanted} yet`,
      `Build it:\npvescaler template build ${template.key}`,
    );
  }
  return failure(
    plain === undefined ? `there is no template ${wanted}` : `VM ${plain.vmId} is not a template`,
    plain === undefined
      ? `Create it, or correct templates.${template.key}.`
      : `Convert it: qm template ${plain.vmId}`,
  );
}

function describe({ id, idByHost, name }: TemplateConfig, host: string): string {
  const chosen = id ?? idByHost[host];
  return chosen === undefined ? (name ?? '-') : String(chosen);
}
