// SPDX-License-Identifier: Apache-2.0
// What Proxmox allows only to a login of root. pvesh runs as root, so Proxmox would not refuse it here; an API token gets
// these texts from Proxmox itself. Secrets are refused too: they would be arguments of a process.
import type { PveshCall } from './command.ts';

const ROOT_ONLY = new Set([
  'affinity',
  'amd-sev',
  'arch',
  'args',
  'hookscript',
  'hugepages',
  'intel-tdx',
  'ivshmem',
  'keephugepages',
  'lock',
  'skiplock',
  'spice_enhancements',
  'vmgenid',
]);

/** The text of the refusal; undefined if a token may do it. */
export function refuseRootOnly({ method, parameters }: PveshCall): string | undefined {
  if (method === 'GET') return undefined;
  for (const [name, value] of parameters) {
    const refusal = refuseParameter(name, value);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

interface Rule {
  readonly name: RegExp;
  isRefused?(value: string): boolean;
  text(name: string): string;
}

const PROCESS_LIST = "over SSH: the host's process list would show it";
const realDevice = (name: string) => `only root can set '${name}' config for real devices`;

const RULES: readonly Rule[] = [
  { name: /^parallel\d+$/, text: (name) => `only root can set '${name}' config` },
  {
    name: /^hostpci\d+$/,
    isRefused: (value) => !/(^|,)mapping=/.test(value) || value.includes('romfile='),
    text: (name) => `only root can set '${name}' config for non-mapped devices`,
  },
  {
    name: /^usb\d+$/,
    isRefused: (value) => !/(^|,)mapping=|^(host=)?spice\b/.test(value),
    text: realDevice,
  },
  { name: /^serial\d+$/, isRefused: (value) => value !== 'socket', text: realDevice },
  {
    name: /^(ide|sata|scsi|virtio|efidisk|tpmstate|unused)\d+$/,
    isRefused: hasPath,
    text: () => 'Only root can pass arbitrary filesystem paths.',
  },
  { name: /^(ci)?password$/, text: (name) => `${name} cannot be set ${PROCESS_LIST}` },
  {
    name: /^url$/,
    isRefused: hasPassword,
    text: () => `a URL with a password cannot be used ${PROCESS_LIST}`,
  },
];

function refuseParameter(name: string, value: string): string | undefined {
  if (ROOT_ONLY.has(name)) return `only root can set '${name}' config`;
  const rule = RULES.find((each) => each.name.test(name));
  return rule !== undefined && rule.isRefused?.(value) !== false ? rule.text(name) : undefined;
}

/** `/dev/sdb`, `file=/dev/sdb`, `import-from=/root/x.img`. */
function hasPath(value: string): boolean {
  return value.split(',').some((part) => /^(file=|import-from=)?\//.test(part));
}

function hasPassword(url: string): boolean {
  return URL.canParse(url) && new URL(url).password !== '';
}
