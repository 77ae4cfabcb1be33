// SPDX-License-Identifier: Apache-2.0
// `vmOptions`: additional options that a pool passes to Proxmox. Proxmox refuses the dangerous options to
// an API token, but not to root over SSH; a config file must not grant root access to a host.
import * as z from 'zod';
import { accepted, type Parsed, refused } from '../../model/parsed.ts';
import { closestMatch } from '../values/closest-match.ts';
import { MANAGED_OPTIONS, PASSED_THROUGH_OPTIONS, REFUSED_OPTIONS } from './vm-option-names.ts';

export type VmOptionValue = string | number | boolean;

/** Checks whether the option is allowed in `vmOptions`. The message never repeats the value. */
export function checkVmOption(name: string, value: VmOptionValue): Parsed<VmOptionValue> {
  const known = checkOptionName(name);
  return known.ok ? checkOptionValue(name, String(value), value) : known;
}

function checkOptionName(name: string): Parsed<string> {
  const general = name.replace(/\d+$/, 'N');
  for (const spelling of [name, general]) {
    const refusal = Object.hasOwn(REFUSED_OPTIONS, spelling)
      ? REFUSED_OPTIONS[spelling]
      : undefined;
    if (refusal !== undefined) return refused(`is not allowed: ${refusal}`);
    const source = Object.hasOwn(MANAGED_OPTIONS, spelling) ? MANAGED_OPTIONS[spelling] : undefined;
    if (source !== undefined) return refused(`is set by pvescaler from ${source}; remove it`);
    if (PASSED_THROUGH_OPTIONS.includes(spelling)) return accepted(name);
  }
  const closest = closestMatch(name, PASSED_THROUGH_OPTIONS);
  return refused(
    `is not a Proxmox VM option${closest === undefined ? '' : `; did you mean '${closest}'?`}`,
  );
}

function checkOptionValue(name: string, text: string, value: VmOptionValue): Parsed<VmOptionValue> {
  if (/[\n\r\0]/.test(text)) return refused('contains a line break');
  if (text.trim() === '') return refused('is empty');
  if (/^(hostpci|usb)\d/.test(name) && !usesResourceMapping(name, text)) {
    return refused(
      "names a device of one host; create a resource mapping in Proxmox and write 'mapping=<name>'",
    );
  }
  if (/(^|[,=:])\s*\//.test(text)) {
    return refused('must not contain an absolute path; use a storage volume instead');
  }
  if (/(^|[,=:/])\s*\.\.?(\/|$)/.test(text)) {
    return refused("must not contain '.' or '..' as a folder");
  }
  if (/^(scsi|sata|virtio|efidisk|tpmstate)\d/.test(name) && !isOwnVolume(text)) {
    return refused(
      "names an existing volume, which may belong to another VM and would be deleted with the machine; write '<storage>:<GiB>' for a new disk",
    );
  }
  return accepted(value);
}

/** A new disk, or an ISO image, which Proxmox never deletes with a VM. */
function isOwnVolume(text: string): boolean {
  const parts = text.split(',').map((part) => part.trim());
  const isCdrom = parts.includes('media=cdrom');
  const volumes = parts.flatMap((part) => /^(?:(?:file|volume)=)?([^=]*)$/.exec(part)?.[1] ?? []);
  return volumes.every(
    (volume) => /^[\w.-]+:\d+(\.\d+)?$/.test(volume) || (isCdrom && /^[\w.-]+:iso\//.test(volume)),
  );
}

/** Whether the device is named by a resource mapping and not by an address. A USB port may also use SPICE. */
function usesResourceMapping(name: string, text: string): boolean {
  const parts = text.split(',').map((part) => part.trim());
  const isSpice = (part: string) => name.startsWith('usb') && /^(host=)?spice$/.test(part);
  const isNamed = parts.some((part) => /^mapping=[A-Za-z][\w.-]*$/.test(part) || isSpice(part));
  return isNamed && parts.every((part) => isSpice(part) || /^(?!host=)\w[\w-]*=[^;]*$/i.test(part));
}

// Accepts any value first: a value of the wrong type must not hide that another option is dangerous.
const scalar = z
  .custom<VmOptionValue>()
  .meta({ type: ['string', 'number', 'boolean'], 'x-type': 'text, number or boolean' });

export const vmOptionsSchema = z
  .record(z.string(), scalar)
  .superRefine((options, context) => {
    for (const [name, value] of Object.entries(options)) {
      if (!isScalar(value)) {
        const params = { expected: 'text, number or boolean' };
        context.addIssue({ code: 'custom', params, path: [name] });
        continue;
      }
      const checked = checkVmOption(name, value);
      if (checked.ok) continue;
      const params = { quotes: false };
      context.addIssue({ code: 'custom', message: checked.problem, params, path: [name] });
    }
  })
  .prefault({});

function isScalar(value: unknown): value is VmOptionValue {
  return ['string', 'number', 'boolean'].includes(typeof value);
}
