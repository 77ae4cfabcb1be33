// SPDX-License-Identifier: Apache-2.0
// Named formats of parameter values: a regular expression and the error text of Proxmox. `<value>` in a text stands for
// the refused value. Other formats are checked by code or not at all.

export interface FormatFact {
  readonly regex: RegExp;
  readonly error: string;
}

const NAME = '[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?';
const ID = /^[a-z][a-z0-9\-_.]*[a-z0-9]$/i;

export const NAMED_FORMATS: Readonly<Record<string, FormatFact>> = {
  'pve-vmid': { regex: /^[1-9][0-9]{2,8}$/, error: 'value does not look like a valid VM ID' },
  'pve-node': {
    regex: new RegExp(`^${NAME}$`),
    error: 'value does not look like a valid node name',
  },
  'dns-name': {
    regex: new RegExp(`^(?:${NAME}\\.)*${NAME}$`),
    error: 'value does not look like a valid DNS name',
  },
  'pve-storage-id': { regex: ID, error: "storage ID '<value>' contains illegal characters" },
  'pve-configid': { regex: /^[a-z][a-z0-9_-]+$/i, error: "invalid configuration ID '<value>'" },
  'pve-bridge-id': { regex: /^[-_.\w\d]+$/, error: "invalid bridge ID '<value>'" },
  'pve-iface': {
    regex: /^[a-z][a-z0-9_]{1,20}([:.]\d+)?$/i,
    error: "invalid network interface name '<value>'",
  },
  'pve-tag': { regex: /^[a-z0-9_][a-z0-9_\-+.]*$/i, error: 'invalid characters in tag' },
  'pve-poolid': {
    regex: /^[A-Za-z0-9.\-_]+(?:\/[A-Za-z0-9.\-_]+){0,2}$/,
    error: "pool name '<value>' contains invalid characters",
  },
  'pve-roleid': {
    regex: /^[A-Za-z0-9.\-_]+$/,
    error: "role name '<value>' contains invalid characters",
  },
  'pve-groupid': {
    regex: /^[A-Za-z0-9.\-_]+$/,
    error: "group name '<value>' contains invalid characters",
  },
  'pve-userid': {
    regex: /^[^\s:/]+@[A-Za-z][A-Za-z0-9.\-_]+$/,
    error: "value '<value>' does not look like a valid user name",
  },
  'pve-tokenid': {
    regex: /^[^\s:/]+@[A-Za-z][A-Za-z0-9.\-_]+![A-Za-z][A-Za-z0-9.\-_]+$/,
    error: "value '<value>' does not look like a valid token ID",
  },
  'pve-realm': {
    regex: /^[A-Za-z][A-Za-z0-9.\-_]+$/,
    error: 'value does not look like a valid realm',
  },
  'pve-volume-id': {
    regex: /^([a-z][a-z0-9\-_.]*[a-z0-9]):(.+)$/i,
    error: "unable to parse volume ID '<value>'\n",
  },
  'mac-addr': {
    regex: /^[a-f0-9][02468ace](?::[a-f0-9]{2}){5}$/i,
    error: 'value does not look like a valid unicast MAC address',
  },
  'mac-prefix': {
    regex: /^[a-f0-9][02468ace](?::[a-f0-9]{2}){0,2}:?$/i,
    error: 'value is not a valid unicast MAC address prefix',
  },
  urlencoded: { regex: /^[-%a-zA-Z0-9_.!~*'()]*$/, error: 'invalid urlencoded string: <value>' },
  'disk-size': {
    regex: /^\d+(?:\.\d+)?(?:[KMGT](?:iB)?)?$/,
    error: 'value does not look like a valid disk size: <value>',
  },
  'pve-task-status-type': {
    regex: /^(?:ok|error|warning|unknown)$/i,
    error: "invalid status '<value>'",
  },
  'pve-storage-content': {
    regex: /^(?:images|rootdir|vztmpl|iso|backup|snippets|none|import)$/,
    error: "invalid content type '<value>'",
  },
  'pve-phys-bits': {
    regex: /^(?:host|[89]|[1-5]\d|6[0-4])$/,
    error: "value must be an integer between 8 and 64 or 'host'",
  },
  email: {
    regex: /^[\w+~-]+(?:\.[\w+~-]+)*@[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)*$/,
    error: 'value does not look like a valid email address',
  },
  string: { regex: /^[\s\S]*$/, error: '' },
};

/** `<storage>:<size in GiB>` allocates a disk; group 2 is the storage, group 3 the size. */
export const NEW_DISK = /^(([^/:\s]+):)?(\d+(?:\.\d+)?)$/;

export const UPID =
  /^UPID:([a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?):([0-9A-Fa-f]{8}):([0-9A-Fa-f]{8,9}):([0-9A-Fa-f]{8}):([^:\s/]+):([^:\s/]*):([^:\s/]+):$/;

/** File names that upload and download-url accept, after each character outside `[a-zA-Z0-9_.-]` is replaced by `_`. */
export const CONTENT_FILE_NAMES = {
  iso: { regex: /[^/]+\.(?:iso|img)$/i, error: 'wrong file extension' },
  vztmpl: { regex: /[^/]+\.tar(?:\.(?:gz|xz|zst|bz2))?$/i, error: 'wrong file extension' },
  import: {
    regex: /^[a-zA-Z0-9.+=_-]+\.(ova|qcow2|raw|vmdk)$/,
    error: 'invalid filename or wrong extension',
  },
} as const;
