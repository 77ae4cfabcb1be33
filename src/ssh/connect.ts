// SPDX-License-Identifier: Apache-2.0
// Opens one SSH connection: socket, key exchange, host key, login.
import type { Duplex } from 'node:stream';
import ssh2, { type Client, type ConnectConfig, type ServerHostKeyAlgorithm } from 'ssh2';
import { InvalidConfig, PvescalerError, Unauthorized, Unreachable } from '../ports/errors.ts';
import { type HostKeyTrust, openHostKeyCheck } from './host-key.ts';

export type SshLogin =
  | {
      readonly kind: 'key';
      /** For messages. */
      readonly path: string;
      /** Read for each connection, so that a new key takes effect. */
      readKey(): Promise<string>;
      readPassphrase?(): Promise<string>;
    }
  /** `socketPath` is the value of SSH_AUTH_SOCK. */
  | { readonly kind: 'agent'; readonly socketPath: string };

/** The key file; without one the agent, whose socket the environment names. */
export function chooseLogin(
  keyFile: Omit<SshLogin & { readonly kind: 'key' }, 'kind'> | undefined,
  agentSocket: string | undefined,
): SshLogin {
  if (keyFile !== undefined) return { kind: 'key', ...keyFile };
  if (agentSocket !== undefined && agentSocket !== '')
    return { kind: 'agent', socketPath: agentSocket };
  throw new InvalidConfig('SECRET_UNREADABLE', 'no SSH agent: SSH_AUTH_SOCK is not set', {
    hint: 'Start an SSH agent and add the key with ssh-add, or set privateKeyFile.',
  });
}

/** Names the peer, because the operator checks different things for each. */
type UnreachableCode = 'PVE_UNREACHABLE' | 'SSH_UNREACHABLE';

export interface SshTarget {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly login: SshLogin;
  readonly trust: HostKeyTrust;
  /** Connects to the SSH port. An abort closes the socket also after it was opened. */
  openSocket(
    address: { readonly host: string; readonly port: number },
    signal: AbortSignal,
  ): Promise<Duplex>;
  /** Default: SSH_UNREACHABLE. */
  readonly unreachable?: UnreachableCode;
}

/** Detects a peer that is gone without a word within a minute. */
const KEEP_ALIVE = { keepaliveInterval: 15_000, keepaliveCountMax: 3 };

export function formatAddress({ host, port }: Pick<SshTarget, 'host' | 'port'>): string {
  return port === 22 ? host : `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** An abort ends the attempt. All rejections say that nothing was sent. */
export async function connect(target: SshTarget, signal: AbortSignal): Promise<Client> {
  const credentials = await readCredentials(target.login);
  const check = await openHostKeyCheck(target.trust, target);
  const socket = await target
    .openSocket({ host: target.host, port: target.port }, signal)
    .catch((error: unknown) => {
      throw error instanceof PvescalerError ? error : unreachable(target, describeError(error));
    });
  // Each running command listens for the loss of the connection.
  const client = new ssh2.Client().setMaxListeners(0);
  let hostKeyError: unknown;
  return new Promise((resolve, reject) => {
    const onAbort = () => fail(unreachable(target, 'the connection attempt was ended'));
    const fail = (error: unknown) => {
      signal.removeEventListener('abort', onAbort);
      client.destroy();
      socket.destroy();
      reject(error instanceof Error ? error : new Error(String(error)));
    };
    client.on('error', (error) => fail(hostKeyError ?? translateError(target, error)));
    client.once('close', () => fail(unreachable(target, 'the host closed the connection')));
    client.once('ready', () => {
      signal.removeEventListener('abort', onAbort);
      resolve(client);
    });
    if (signal.aborted) return onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    const hostVerifier = (key: Buffer, accept: (isTrusted: boolean) => void) => {
      check.verify(key).then(
        () => accept(true),
        (error: unknown) => {
          hostKeyError = error;
          accept(false);
        },
      );
    };
    client.connect({
      ...KEEP_ALIVE,
      ...credentials,
      sock: socket,
      username: target.user,
      // The deadline of the call ends the handshake.
      readyTimeout: 0,
      hostVerifier,
      ...(check.types !== undefined && {
        algorithms: { serverHostKey: check.types.flatMap(signatureAlgorithms) },
      }),
    });
  });
}

/** A key of type `ssh-rsa` signs with SHA-2. */
function signatureAlgorithms(type: string): readonly ServerHostKeyAlgorithm[] {
  if (type === 'ssh-rsa') return ['rsa-sha2-512', 'rsa-sha2-256'];
  return SUPPORTED_TYPES.filter((each) => each === type);
}

const SUPPORTED_TYPES: readonly ServerHostKeyAlgorithm[] = [
  'ssh-ed25519',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
];

async function readCredentials(login: SshLogin): Promise<ConnectConfig> {
  if (login.kind === 'agent') return { agent: login.socketPath };
  const text = await login.readKey().catch((cause: unknown) => {
    throw keyUnusable(login.path, describeError(cause), cause);
  });
  const passphrase = await login.readPassphrase?.();
  const parsed = ssh2.utils.parseKey(text, passphrase);
  if (parsed instanceof Error) throw keyUnusable(login.path, parsed.message, undefined);
  return { privateKey: text, ...(passphrase !== undefined && { passphrase }) };
}

function keyUnusable(path: string, reason: string, cause: unknown): InvalidConfig {
  return new InvalidConfig('SECRET_UNREADABLE', `SSH key ${path}: ${reason}`, {
    cause,
    hint: 'Set a private key in the format of OpenSSH, and its passphrase if it has one.',
    facts: { requestSent: false },
  });
}

function translateError(target: SshTarget, error: Error & { readonly level?: string }): Error {
  const { login, user } = target;
  if (error.level === 'client-authentication' || error.level === 'agent') {
    const offered = login.kind === 'key' ? `key ${login.path}` : `agent ${login.socketPath}`;
    return new Unauthorized(
      'SSH_LOGIN_REFUSED',
      `${formatAddress(target)} refuses the login of ${user} with ${offered}`,
      { cause: error, facts: { requestSent: false } },
    );
  }
  return unreachable(target, describeError(error), error);
}

export function unreachable(
  target: Pick<SshTarget, 'host' | 'port' | 'unreachable'>,
  reason: string,
  cause?: unknown,
): Unreachable {
  return new Unreachable(
    target.unreachable ?? 'SSH_UNREACHABLE',
    `${formatAddress(target)} cannot be reached over SSH: ${reason}`,
    {
      cause,
      hint: `Check that the host is up, that sshd runs on it, and that port ${target.port} is open.`,
      facts: { requestSent: false },
    },
  );
}

function describeError(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0)
    return describeError(error.errors[0]);
  return error instanceof Error ? error.message : String(error);
}
