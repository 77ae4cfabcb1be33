// SPDX-License-Identifier: Apache-2.0
// Fetches a secret from where the config says it is. Reading is handed in, so that this runs without a disk
// and without a cluster.
import { InvalidConfig } from '../../ports/errors.ts';
import { looksLikeToken } from './looks-secret.ts';
import { Secret } from './secret.ts';
import { describeSecretSource, type SecretSource } from './source.ts';

export interface SecretFile {
  readonly text: string;
  /** Permission bits, where the system has them. */
  readonly mode?: number;
}

export interface SecretReaders {
  readonly readFile: (path: string) => Promise<SecretFile>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Absent where there is no cluster to ask. */
  readonly readKubernetesSecret?: (ref: {
    readonly namespace: string;
    readonly name: string;
    readonly key: string;
  }) => Promise<string | undefined>;
}

export interface ResolvedSecret {
  readonly secret: Secret;
  readonly warnings: readonly string[];
}

const OTHERS_MAY_READ = 0o004;

export async function resolveSecret(
  source: SecretSource,
  readers: SecretReaders,
): Promise<ResolvedSecret> {
  const { text, warnings } = await read(source, readers);
  // One line break only: editors add it, and a secret may well end in blanks.
  const value = text.replace(/\r?\n$/, '');
  if (value === '') throw unreadable(source, 'is empty');
  return { secret: new Secret(value), warnings };
}

interface Found {
  readonly text: string;
  readonly warnings: readonly string[];
}

function read(source: SecretSource, readers: SecretReaders): Promise<Found> {
  switch (source.kind) {
    case 'file':
      return readSecretFile(source, readers);
    case 'environment':
      return Promise.resolve({ text: readVariable(source, readers), warnings: [] });
    default:
      return readKubernetes(source, readers);
  }
}

async function readSecretFile(
  source: Extract<SecretSource, { kind: 'file' }>,
  readers: SecretReaders,
): Promise<Found> {
  const file = await readers.readFile(source.path).catch((cause: unknown) => {
    throw unreadable(source, `cannot be read${reason(cause)}`);
  });
  const isOpen = file.mode !== undefined && (file.mode & OTHERS_MAY_READ) !== 0;
  return {
    text: file.text,
    warnings: isOpen
      ? [`secret file ${source.path} can be read by every user of this machine; chmod 600 it`]
      : [],
  };
}

function readVariable(
  source: Extract<SecretSource, { kind: 'environment' }>,
  readers: SecretReaders,
): string {
  const text = readers.environment[source.variable];
  if (text === undefined) throw unreadable(source, 'is not set');
  return text;
}

async function readKubernetes(
  source: Extract<SecretSource, { kind: 'kubernetes' }>,
  readers: SecretReaders,
): Promise<Found> {
  if (readers.readKubernetesSecret === undefined) {
    throw unreadable(source, 'is not read in this release: mount it into the pod as a file');
  }
  const text = await readers.readKubernetesSecret(source);
  if (text === undefined) throw unreadable(source, 'is not there');
  return { text, warnings: [] };
}

/** The code of a file error (`ENOENT`), never its text: that repeats the path, which may be a pasted secret. */
function reason(cause: unknown): string {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  return typeof code === 'string' ? ` (${code})` : '';
}

function unreadable(source: SecretSource, problem: string): InvalidConfig {
  // Somebody may have written the secret itself where the file's name belongs.
  const isPasted = source.kind === 'file' && looksLikeToken(source.path.replace(/^.*\//, ''));
  const subject = isPasted ? 'the file named (not shown)' : describeSecretSource(source);
  return new InvalidConfig('SECRET_UNREADABLE', `${subject} ${problem}`);
}
