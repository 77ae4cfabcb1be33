// SPDX-License-Identifier: Apache-2.0
// Reads a secret from its source. The caller passes the reader functions, so that this code needs no disk
// and no cluster.
import { InvalidConfig } from '../../ports/errors.ts';
import { mayBeToken } from './detect-secret.ts';
import { Secret } from './secret.ts';
import { describeSecretSource, type SecretSource } from './secret-source.ts';

export interface SecretFile {
  readonly text: string;
  /** Permission bits, if the system has them. */
  readonly mode?: number;
}

export interface SecretReaders {
  readonly readFile: (path: string) => Promise<SecretFile>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Absent when no cluster is available. */
  readonly readKubernetesSecret?: (ref: {
    readonly namespace: string;
    readonly name: string;
    readonly key: string;
  }) => Promise<string>;
}

export interface ResolvedSecret {
  readonly secret: Secret;
  readonly warnings: readonly string[];
}

const WORLD_READABLE = 0o004;

export async function resolveSecret(
  source: SecretSource,
  readers: SecretReaders,
): Promise<ResolvedSecret> {
  const { text, warnings } = await readSource(source, readers);
  // Removes only one line break, which editors add; a secret may end in blanks.
  const value = text.replace(/\r?\n$/, '');
  if (value === '') throw unreadableSecretError(source, 'is empty');
  return { secret: new Secret(value), warnings };
}

interface SecretText {
  readonly text: string;
  readonly warnings: readonly string[];
}

function readSource(source: SecretSource, readers: SecretReaders): Promise<SecretText> {
  switch (source.kind) {
    case 'file':
      return readSecretFile(source, readers);
    case 'environment':
      return Promise.resolve({ text: readVariable(source, readers), warnings: [] });
    case 'kubernetes':
      return readKubernetesSecret(source, readers);
  }
}

async function readSecretFile(
  source: Extract<SecretSource, { kind: 'file' }>,
  readers: SecretReaders,
): Promise<SecretText> {
  const file = await readers.readFile(source.path).catch((cause: unknown) => {
    throw unreadableSecretError(source, `cannot be read${errorCodeSuffix(cause)}`);
  });
  const isOpen = file.mode !== undefined && (file.mode & WORLD_READABLE) !== 0;
  return {
    text: file.text,
    warnings: isOpen
      ? [
          `secret file ${source.path} is readable by every user of this machine; run chmod 600 on it`,
        ]
      : [],
  };
}

function readVariable(
  source: Extract<SecretSource, { kind: 'environment' }>,
  readers: SecretReaders,
): string {
  const text = readers.environment[source.variable];
  if (text === undefined) throw unreadableSecretError(source, 'is not set');
  return text;
}

async function readKubernetesSecret(
  source: Extract<SecretSource, { kind: 'kubernetes' }>,
  readers: SecretReaders,
): Promise<SecretText> {
  if (readers.readKubernetesSecret === undefined) {
    throw unreadableSecretError(
      source,
      'cannot be read without access to Kubernetes; set cluster.kubeconfig, or run in a pod',
    );
  }
  return { text: await readers.readKubernetesSecret(source), warnings: [] };
}

/** The code of a file error (`ENOENT`). Its text contains the path, which may be a pasted secret. */
function errorCodeSuffix(cause: unknown): string {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  return typeof code === 'string' ? ` (${code})` : '';
}

function unreadableSecretError(source: SecretSource, problem: string): InvalidConfig {
  // The user may have written the secret itself instead of a file name.
  const isPasted = source.kind === 'file' && mayBeToken(source.path.replace(/^.*\//, ''));
  const subject = isPasted ? 'secret file (name not shown)' : describeSecretSource(source);
  return new InvalidConfig('SECRET_UNREADABLE', `${subject} ${problem}`);
}
