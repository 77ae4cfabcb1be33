// SPDX-License-Identifier: Apache-2.0
// Where cloud-init finds its data: a NoCloud disk, or Proxmox's own drive (pve-drive.ts).
import { IsoError, readIso } from '../iso9660.ts';
import { type PlainRecord, parseYaml, recordOf, textOf } from '../plain-values.ts';

export interface Seed {
  readonly instanceId: string;
  readonly metaData: PlainRecord;
  readonly userData: Uint8Array;
  readonly vendorData: Uint8Array;
  readonly networkConfig: unknown;
}

/** Either a seed, or the reason why the disk is none; problems are what a log would show of a usable seed. */
export type SeedResult =
  | { readonly seed: Seed; readonly problems: readonly string[] }
  | { readonly seed: undefined; readonly problems: readonly string[] };

const LABELS = ['cidata', 'CIDATA'];
const NO_INSTANCE_ID = 'iid-datasource-nocloud';
const NOTHING = new Uint8Array();

export function seedFromIso(image: Uint8Array): SeedResult {
  try {
    const { label, files } = readIso(image);
    if (!LABELS.includes(label)) {
      return { seed: undefined, problems: [`seed disk: label '${label}' is not cidata`] };
    }
    return seedFromFiles((name) => files.get(name)?.bytes);
  } catch (error) {
    if (!(error instanceof IsoError)) throw error;
    return { seed: undefined, problems: [`seed disk: ${error.message}`] };
  }
}

function seedFromFiles(read: (name: string) => Uint8Array | undefined): SeedResult {
  const metaData = read('meta-data');
  const userData = read('user-data');
  if (metaData === undefined || userData === undefined) {
    const missing = metaData === undefined ? 'meta-data' : 'user-data';
    return { seed: undefined, problems: [`seed disk: no file ${missing}`] };
  }
  const meta = parseYaml(textFrom(metaData));
  const network = parseYaml(textFrom(read('network-config') ?? NOTHING));
  const record = recordOf(meta.value);
  const seed: Seed = {
    instanceId: textOf(record['instance-id']) ?? NO_INSTANCE_ID,
    metaData: record,
    userData,
    vendorData: read('vendor-data') ?? NOTHING,
    networkConfig: network.value,
  };
  const problems = [
    ...(meta.problem === undefined ? [] : [`meta-data: ${meta.problem}`]),
    ...(network.problem === undefined ? [] : [`network-config: ${network.problem}`]),
  ];
  return { seed, problems };
}

export function textFrom(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
