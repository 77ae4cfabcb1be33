// SPDX-License-Identifier: Apache-2.0
// Checks of the `cpu` option beyond its schema: known models, and flags that a VM can set.
import type { ParamFact } from '../../../proxmox/wire-facts/index.ts';

const GENERIC = new Set(['x86-64-v2', 'x86-64-v2-AES', 'x86-64-v3', 'x86-64-v4']);
const FLAGS_OF_8 = [
  'pcid',
  'spec-ctrl',
  'ibpb',
  'ssbd',
  'virt-ssbd',
  'amd-ssbd',
  'amd-no-ssb',
  'pdpe1gb',
  'md-clear',
  'hv-tlbflush',
  'hv-evmcs',
  'aes',
];
const FLAGS_OF_9 = [...FLAGS_OF_8, 'nested-virt'].toSorted();

type Fields = Readonly<Record<string, ParamFact>>;

function verifyModel(cputype: string, fields: Fields): void {
  if (cputype === '' || cputype === '0') throw new Error('CPU is missing cputype\n');
  if (cputype.startsWith('custom-')) {
    throw new Error(`Custom cputype '${cputype.slice('custom-'.length)}' not found\n`);
  }
  const known = fields['reported-model']?.enum ?? [];
  if (known.includes(cputype) || GENERIC.has(cputype)) return;
  throw new Error(`Built-in cputype '${cputype}' is not defined (missing 'custom-' prefix?)\n`);
}

/** Throws the same errors as Proxmox; `fields` are those of the simulated version. */
export function verifyCpu(values: Readonly<Record<string, string>>, fields: Fields): void {
  const { cputype = '', flags } = values;
  verifyModel(cputype, fields);
  const allowed = fields['guest-phys-bits'] === undefined ? FLAGS_OF_8 : FLAGS_OF_9;
  const good = (flag: string) => /^[+-]/.test(flag) && allowed.includes(flag.slice(1));
  if (flags !== undefined && !flags.split(';').every(good)) {
    throw new Error(`VM-specific CPU flags must be a subset of: ${allowed.join(', ')}\n`);
  }
  if (values['reported-model'] !== undefined) {
    throw new Error("Property 'reported-model' not allowed in VM-specific CPU config.\n");
  }
}
