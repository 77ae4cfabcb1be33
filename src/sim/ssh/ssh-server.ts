// SPDX-License-Identifier: Apache-2.0
import { timingSafeEqual } from 'node:crypto';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import ssh2, {
  type AuthContext,
  type Connection,
  type ParsedKey,
  type ServerChannel,
  type Session,
} from 'ssh2';
import { type RemoteFiles, serveSftp } from './sftp.ts';

export interface ServedCommand {
  readonly command: string;
  readonly input: Uint8Array;
  readonly user: string;
  /** Whether output still reaches the client. */
  readonly isConnected: () => boolean;
}

export interface CommandEnd {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface SshServerOptions {
  /** A private key in the format of OpenSSH; see `createSshKey`. */
  readonly hostKey: string;
  /** Public keys that may log in, `type base64 comment`. */
  readonly authorizedKeys: readonly string[];
  /** Continues when the client is gone, like a command without a terminal. A rejection closes the connection. */
  run(command: ServedCommand): Promise<CommandEnd>;
  readonly files: RemoteFiles;
  /** False: the connection is closed at once, as by a host that is down. */
  readonly isUp?: () => boolean;
}

export interface SshServer {
  /** Serves one connection. */
  accept(socket: Socket): void;
  /** Listens; port 0 = any free one. Resolves with the port. */
  listen(port: number, host: string): Promise<number>;
  /** Closes all connections without a word, as when the network fails. */
  dropConnections(): void;
  close(): Promise<void>;
}

/** As OpenSSH's MaxSessions. */
const MAX_SESSIONS = 10;

/** A new key pair: the private key in the format of OpenSSH, the public key as in authorized_keys. */
export function createSshKey(comment = ''): { readonly private: string; readonly public: string } {
  for (;;) {
    const pair = ssh2.utils.generateKeyPairSync('ed25519', { comment });
    // The library writes one of 256 keys in a form that it cannot read.
    if (!(ssh2.utils.parseKey(pair.private) instanceof Error)) return pair;
  }
}

export function createSshServer(options: SshServerOptions): SshServer {
  const keys = options.authorizedKeys.flatMap((text) => {
    const parsed = ssh2.utils.parseKey(text);
    return parsed instanceof Error ? [] : [parsed];
  });
  const server = new ssh2.Server({ hostKeys: [options.hostKey] }, (connection) =>
    serveConnection(connection, { ...options, keys }),
  );
  const sockets = new Set<Socket>();
  const accept = (socket: Socket) => {
    socket.on('error', () => socket.destroy());
    if (options.isUp?.() === false) return void socket.destroy();
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    server.injectSocket(socket);
  };
  const listener = createServer(accept);
  const dropConnections = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    accept,
    dropConnections,
    listen: (port, host) => listen(listener, port, host),
    close: () => {
      dropConnections();
      return new Promise((resolve) => {
        listener.close(() => resolve());
      });
    },
  };
}

function listen(
  listener: ReturnType<typeof createServer>,
  port: number,
  host: string,
): Promise<number> {
  return new Promise((resolve, reject) => {
    listener.once('error', reject);
    listener.listen(port, host, () => {
      const address: AddressInfo | string | null = listener.address();
      resolve(typeof address === 'object' && address !== null ? address.port : port);
    });
  });
}

interface ConnectionOptions extends SshServerOptions {
  readonly keys: readonly ParsedKey[];
}

function serveConnection(connection: Connection, options: ConnectionOptions): void {
  let user = '';
  let sessions = 0;
  connection.on('error', () => connection.end());
  connection.on('authentication', (attempt) => {
    user = attempt.username;
    if (isAllowed(attempt, options.keys)) attempt.accept();
    else attempt.reject(['publickey']);
  });
  connection.on('session', (accept, reject) => {
    if (sessions >= MAX_SESSIONS) return reject();
    sessions += 1;
    const onEnd = () => {
      sessions -= 1;
    };
    serveSession(accept(), { ...options, user, onEnd, onFailure: () => connection.end() });
  });
}

/** A client may first ask whether a key would be accepted, without a signature. */
function isAllowed(attempt: AuthContext, keys: readonly ParsedKey[]): boolean {
  if (attempt.method !== 'publickey') return false;
  const key = keys.find((each) => isSameKey(each.getPublicSSH(), attempt.key.data));
  if (key === undefined) return false;
  if (attempt.signature === undefined || attempt.blob === undefined) return true;
  // An invalid signature may also be an Error.
  const isValid: unknown = key.verify(attempt.blob, attempt.signature, attempt.hashAlgo);
  return isValid === true;
}

function isSameKey(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}

interface SessionOptions extends ConnectionOptions {
  readonly user: string;
  readonly onEnd: () => void;
  readonly onFailure: () => void;
}

function serveSession(session: Session, options: SessionOptions): void {
  const { user, onEnd, onFailure } = options;
  session.on('exec', (accept, _reject, { command }) => {
    const channel = accept();
    channel.once('close', onEnd);
    const isConnected = () => !channel.destroyed && channel.writable;
    readInput(channel)
      .then((input) => options.run({ command, input, user, isConnected }))
      .then((end) => sendEnd(channel, end))
      .catch(onFailure);
  });
  session.on('sftp', (accept) => {
    const sftp = accept();
    sftp.once('close', onEnd);
    serveSftp(sftp, options.files);
  });
}

function readInput(channel: ServerChannel): Promise<Uint8Array> {
  const parts: Buffer[] = [];
  return new Promise((resolve) => {
    channel.on('data', (part: Buffer) => parts.push(part));
    channel.once('end', () => resolve(Buffer.concat(parts)));
    channel.on('error', () => channel.destroy());
  });
}

function sendEnd(channel: ServerChannel, { code, out, err }: CommandEnd): void {
  if (channel.destroyed || !channel.writable) return;
  channel.write(out);
  channel.stderr.write(err);
  channel.exit(code);
  channel.end();
}
