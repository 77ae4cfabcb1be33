// SPDX-License-Identifier: Apache-2.0
import { createHash } from 'node:crypto';
import { InvalidConfig, Unauthorized } from '../ports/errors.ts';
import { findKnownKeys, formatKnownHost, type HostAddress, type KnownKey } from './known-hosts.ts';

/** A host key that is not known yet, for the question whether to trust it. */
export interface UnknownHostKey {
  /** As in a known hosts file. */
  readonly host: string;
  /** `ssh-ed25519`. */
  readonly type: string;
  /** `SHA256:…`, as `ssh-keygen -l` prints it. */
  readonly fingerprint: string;
}

export type HostKeyTrust =
  /** Exactly these keys, `SHA256:…`. */
  { readonly kind: 'fingerprints'; readonly fingerprints: readonly string[] } | KnownHostsTrust;

interface KnownHostsTrust {
  readonly kind: 'known-hosts';
  /** For messages. */
  readonly path: string;
  /** Undefined if the file does not exist. */
  read(): Promise<string | undefined>;
  /** First use: asks a person, who compares the fingerprint. Absent: an unknown key is refused. */
  readonly firstUse?: {
    confirm(key: UnknownHostKey): Promise<boolean>;
    /** Appends a line to the file. */
    append(line: string): Promise<void>;
  };
}

interface KnownHostsFiles {
  read(path: string): Promise<string | undefined>;
  appendLine(path: string, line: string): Promise<void>;
  /** Asks a person yes or no; undefined without a terminal. */
  readonly ask: ((question: string) => Promise<boolean>) | undefined;
}

/** On a terminal, a person decides on an unknown host key. */
export function trustKnownHosts(path: string, files: KnownHostsFiles): HostKeyTrust {
  const { ask } = files;
  return {
    kind: 'known-hosts',
    path,
    read: () => files.read(path),
    ...(ask !== undefined && {
      firstUse: {
        confirm: ({ host, type, fingerprint }: UnknownHostKey) =>
          ask(
            `The SSH host ${host} is not known. Its ${type} key has the fingerprint\n  ${fingerprint}\nTrust it and add it to ${path}?`,
          ),
        append: (line: string) => files.appendLine(path, line),
      },
    }),
  };
}

/** What is trusted of one host, read once per connection. */
export interface HostKeyCheck {
  /** Key types to ask the host for, so that it presents a known key; undefined: any. */
  readonly types: readonly string[] | undefined;
  /** Rejects with SSH_HOST_KEY_NOT_TRUSTED. */
  verify(key: Buffer): Promise<void>;
}

export async function openHostKeyCheck(
  trust: HostKeyTrust,
  address: HostAddress,
): Promise<HostKeyCheck> {
  if (trust.kind === 'fingerprints') {
    return { types: undefined, verify: async (key) => verifyFingerprint(trust, address, key) };
  }
  const text = await trust.read().catch((cause: unknown) => {
    throw new InvalidConfig(
      'CONFIG_UNREADABLE',
      `cannot read the known hosts file ${trust.path}: ${String(cause)}`,
      { cause, facts: { requestSent: false } },
    );
  });
  const known = findKnownKeys(text ?? '', address);
  const types = known.filter((key) => !key.isRevoked).map((key) => key.type);
  return {
    types: types.length === 0 ? undefined : [...new Set(types)],
    verify: (key) => verifyKnown({ trust, address, known }, key),
  };
}

export function formatFingerprint(key: Buffer): string {
  return `SHA256:${createHash('sha256').update(key).digest('base64').replace(/=+$/, '')}`;
}

function verifyFingerprint(
  { fingerprints }: HostKeyTrust & { readonly kind: 'fingerprints' },
  address: HostAddress,
  key: Buffer,
): void {
  const fingerprint = formatFingerprint(key);
  if (fingerprints.some((each) => each.replace(/=+$/, '') === fingerprint)) return;
  throw notTrusted(
    address,
    `${describeKey(key)}, which is none of the configured ones`,
    `Compare it with the output of ${KEYGEN} on the host, and set hostKeys if it is the same.`,
  );
}

interface KnownHostKeys {
  readonly trust: KnownHostsTrust;
  readonly address: HostAddress;
  readonly known: readonly KnownKey[];
}

async function verifyKnown({ trust, address, known }: KnownHostKeys, key: Buffer): Promise<void> {
  const base64 = key.toString('base64');
  const entries = known.filter((entry) => entry.base64 === base64);
  if (entries.some((entry) => entry.isRevoked)) {
    throw notTrusted(address, `${describeKey(key)}, which ${trust.path} revokes`, RENEW_HINT);
  }
  if (entries.length > 0) return;
  if (known.some((entry) => !entry.isRevoked)) {
    throw notTrusted(
      address,
      `${describeKey(key)}, but ${trust.path} has another key for it`,
      `Somebody may intercept the connection, or the host was installed again. If it was, run: ssh-keygen -R '${formatKnownHost(address)}' -f ${trust.path}`,
    );
  }
  await confirmFirstUse(trust, address, key);
}

async function confirmFirstUse(
  trust: KnownHostsTrust,
  address: HostAddress,
  key: Buffer,
): Promise<void> {
  const host = formatKnownHost(address);
  const type = keyType(key);
  const isTrusted = await trust.firstUse?.confirm({
    host,
    type,
    fingerprint: formatFingerprint(key),
  });
  if (isTrusted === true) {
    return trust.firstUse?.append(`${host} ${type} ${key.toString('base64')}`);
  }
  const port = address.port === 22 ? '' : ` -p ${address.port}`;
  throw notTrusted(
    address,
    `${describeKey(key)}, and ${trust.path} has no key for it`,
    `Compare the fingerprint with the output of ${KEYGEN} on the host. If it is the same, run: ssh-keyscan${port} ${address.host} >> ${trust.path}`,
  );
}

const KEYGEN = '`for f in /etc/ssh/ssh_host_*_key.pub; do ssh-keygen -lf $f; done`';
const RENEW_HINT = 'Give the host a new key, or remove the @revoked line if it is wrong.';

/** The key starts with its type, as a length of four bytes and the text. */
function keyType(key: Buffer): string {
  return key.length < 4 ? '' : key.subarray(4, 4 + key.readUInt32BE(0)).toString('latin1');
}

function describeKey(key: Buffer): string {
  return `${keyType(key)} ${formatFingerprint(key)}`;
}

function notTrusted(address: HostAddress, presented: string, hint: string): Unauthorized {
  return new Unauthorized(
    'SSH_HOST_KEY_NOT_TRUSTED',
    `${formatKnownHost(address)} presents the host key ${presented}`,
    { hint, facts: { requestSent: false } },
  );
}
