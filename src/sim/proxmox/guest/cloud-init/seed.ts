// SPDX-License-Identifier: Apache-2.0
// Reads the cloud-init seed from a NoCloud disk. pve-drive.ts builds the seed of the Proxmox cloud-init drive.
import { IsoError, readIso } from '../iso9660.ts';
import { asRecord, asText, type PlainRecord, parseYaml } from '../untyped-values.ts';

export interface Seed {
  readonly instanceId: string;
  readonly metaData: PlainRecord;
  readonly userData: Uint8Array;
  readonly vendorData: Uint8Array;
  readonly networkConfig: unknown;
}

/** The seed, or undefined with the reason in `problems`. A usable seed can have problems too. */
export interface SeedResult {
  readonly seed: Seed | undefined;
  readonly problems: readonly string[];
}

const SEED_LABELS = ['cidata', 'CIDATA'];
const DEFAULT_INSTANCE_ID = 'iid-datasource-nocloud';
const NO_BYTES = new Uint8Array();

export function readSeedIso(image: Uint8Array): SeedResult {
  try {
    const { label, files } = readIso(image);
    if (!SEED_LABELS.includes(label)) {
      return { seed: undefined, problems: [`seed disk: label '${label}' is not cidata`] };
    }
    return readSeedFiles((name) => files.get(name)?.bytes);
  } catch (error) {
    if (!(error instanceof IsoError)) throw error;
    return { seed: undefined, problems: [`seed disk: ${error.message}`] };
  }
}

function readSeedFiles(read: (name: string) => Uint8Array | undefined): SeedResult {
  const metaData = read('meta-data');
  const userData = read('user-data');
  if (metaData === undefined || userData === undefined) {
    const missing = metaData === undefined ? 'meta-data' : 'user-data';
    return { seed: undefined, problems: [`seed disk: no file ${missing}`] };
  }
  const meta = parseYaml(decodeUtf8(metaData));
  const network = parseYaml(decodeUtf8(read('network-config') ?? NO_BYTES));
  const record = asRecord(meta.value);
  const seed: Seed = {
    instanceId: asText(record['instance-id']) ?? DEFAULT_INSTANCE_ID,
    metaData: record,
    userData,
    vendorData: read('vendor-data') ?? NO_BYTES,
    networkConfig: network.value,
  };
  const problems = [
    ...(meta.problem === undefined ? [] : [`meta-data: ${meta.problem}`]),
    ...(network.problem === undefined ? [] : [`network-config: ${network.problem}`]),
  ];
  return { seed, problems };
}

function decodeUtf8(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
