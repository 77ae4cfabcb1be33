// SPDX-License-Identifier: Apache-2.0
// `vmOptions`: what a pool may pass to Proxmox beyond our own keys. A token may not set the dangerous ones
// anyway, but root over SSH may, and a config file is not the place to become root on a host.
import * as z from 'zod';
import { accepted, type Parsed, refused } from '../../model/parsed.ts';
import { nearest } from '../values/nearest.ts';
import { OURS, PASSED_ON, REFUSED } from './vm-option-names.ts';

export type VmOptionValue = string | number | boolean;

/** Why this option cannot stand in `vmOptions`; the value is never repeated. */
export function checkVmOption(name: string, value: VmOptionValue): Parsed<VmOptionValue> {
  const known = checkName(name);
  return known.ok ? checkValue(name, String(value), value) : known;
}

function checkName(name: string): Parsed<string> {
  const general = name.replace(/\d+$/, 'N');
  for (const spelling of [name, general]) {
    const refusal = Object.hasOwn(REFUSED, spelling) ? REFUSED[spelling] : undefined;
    if (refusal !== undefined) return refused(`is refused: ${refusal}`);
    const home = Object.hasOwn(OURS, spelling) ? OURS[spelling] : undefined;
    if (home !== undefined) return refused(`is set by pvescaler; the key for it is ${home}`);
    if (PASSED_ON.includes(spelling)) return accepted(name);
  }
  const meant = nearest(name, PASSED_ON);
  return refused(
    `is no VM option that Proxmox has${meant === undefined ? '' : `; did you mean '${meant}'?`}`,
  );
}

function checkValue(name: string, text: string, value: VmOptionValue): Parsed<VmOptionValue> {
  if (/[\n\r\0]/.test(text)) return refused('contains a line break');
  if (text.trim() === '') return refused('is empty');
  if (/^(hostpci|usb)\d/.test(name) && !/(^|,)(mapping=|spice(,|$))/.test(text)) {
    return refused(
      "names a device of one host; make a resource mapping in Proxmox and write 'mapping=<name>'",
    );
  }
  if (/(^|[,=:])\s*\//.test(text)) {
    return refused('contains an absolute path; name a storage volume instead');
  }
  return accepted(value);
}

const scalar = z
  .union([z.string(), z.number(), z.boolean()])
  .meta({ 'x-forms': 'text, a number or true/false', 'x-type': 'text, number or boolean' });

export const vmOptionsSchema = z
  .record(z.string(), scalar)
  .superRefine((options, context) => {
    for (const [name, value] of Object.entries(options)) {
      const checked = checkVmOption(name, value);
      if (!checked.ok) {
        context.addIssue({ code: 'custom', message: checked.problem, path: [name] });
      }
    }
  })
  .prefault({});
