// SPDX-License-Identifier: Apache-2.0
// The connections of a listener. A connection with calls stays open: the autoscaler keeps one for its whole life. An
// unused connection is closed after a timeout, or earlier when the connection limit is reached.
import type {
  Http2SecureServer,
  Http2Server,
  Http2Session,
  ServerHttp2Session,
  ServerHttp2Stream,
} from 'node:http2';
import type { Socket } from 'node:net';
import type { Clock } from '../../ports/clock.ts';

const MAX_CONNECTIONS = 2_000;

/** From connecting to the first call. A closed client reconnects when it has a call to make. */
const FIRST_CALL_TIMEOUT_MS = 30_000;

/** The autoscaler calls several times per minute, and grpc-go closes an idle connection itself after half an hour. */
const IDLE_TIMEOUT_MS = 3_600_000;

const SWEEP_INTERVAL_MS = 5_000;
const KEEPALIVE_DELAY_MS = 60_000;

interface Connection {
  readonly socket: Socket;
  session: ServerHttp2Session | undefined;
  /** When it was opened, later when its last call ended. */
  lastActivityAt: number;
  hasBeenUsed: boolean;
  openCalls: number;
  isClosing: boolean;
}

export class Connections {
  readonly #clock: Clock;
  /** In the order of opening. */
  readonly #all = new Map<string, Connection>();
  readonly #bySession = new WeakMap<Http2Session, Connection>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  track(server: Http2Server | Http2SecureServer): void {
    // Before the server's own listener, which may start the session immediately.
    server.prependListener('connection', (socket: Socket) => this.#open(socket));
    server.on('session', (session: ServerHttp2Session) => {
      // A reset or a malformed frame ends the session; without a listener it would end the process.
      session.on('error', () => undefined);
      const connection = this.#all.get(connectionKey(session.socket));
      if (connection === undefined) return session.destroy();
      connection.session = session;
      this.#bySession.set(session, connection);
    });
  }

  /** Not called for calls refused before admission: a connection with only such calls counts as unused. */
  callStarted(stream: ServerHttp2Stream): void {
    const connection =
      stream.session === undefined ? undefined : this.#bySession.get(stream.session);
    if (connection === undefined) return;
    connection.hasBeenUsed = true;
    connection.openCalls += 1;
    stream.once('close', () => {
      connection.openCalls -= 1;
      connection.lastActivityAt = this.#clock.monotonic();
    });
  }

  /** Runs until the signal aborts. */
  async sweep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#clock.sleep(SWEEP_INTERVAL_MS, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      for (const connection of this.#all.values()) this.#closeIfIdle(connection);
    }
  }

  /** Running calls finish; new calls need a new connection. */
  closeGracefully(): void {
    for (const connection of this.#all.values()) closeConnection(connection);
  }

  destroy(): void {
    for (const { session, socket } of this.#all.values()) {
      session?.destroy();
      socket.destroy();
    }
  }

  #open(socket: Socket): void {
    socket.on('error', () => undefined);
    if (this.#all.size >= MAX_CONNECTIONS && !this.#evictOne()) return void socket.destroy();
    socket.setKeepAlive(true, KEEPALIVE_DELAY_MS);
    const key = connectionKey(socket);
    this.#all.set(key, {
      socket,
      session: undefined,
      lastActivityAt: this.#clock.monotonic(),
      hasBeenUsed: false,
      openCalls: 0,
      isClosing: false,
    });
    socket.once('close', () => this.#all.delete(key));
  }

  #evictOne(): boolean {
    const [key, connection] = this.#findMostIdle() ?? [];
    if (key === undefined || connection === undefined) return false;
    this.#all.delete(key);
    connection.session?.destroy();
    connection.socket.destroy();
    return true;
  }

  /** The oldest connection without any call; else the one whose last call ended first. */
  #findMostIdle(): readonly [string, Connection] | undefined {
    let oldest: readonly [string, Connection] | undefined;
    for (const one of this.#all) {
      const [, { hasBeenUsed, openCalls, lastActivityAt }] = one;
      if (!hasBeenUsed) return one;
      if (
        openCalls === 0 &&
        lastActivityAt < (oldest?.[1].lastActivityAt ?? Number.POSITIVE_INFINITY)
      )
        oldest = one;
    }
    return oldest;
  }

  #closeIfIdle(connection: Connection): void {
    const { hasBeenUsed, openCalls, lastActivityAt } = connection;
    const timeoutMs = hasBeenUsed ? IDLE_TIMEOUT_MS : FIRST_CALL_TIMEOUT_MS;
    if (openCalls > 0 || this.#clock.monotonic() - lastActivityAt < timeoutMs) return;
    if (!connection.isClosing) return closeConnection(connection);
    connection.session?.destroy();
    connection.socket.destroy();
  }
}

/** A connection without a session has not completed its TLS handshake. */
function closeConnection(connection: Connection): void {
  connection.isClosing = true;
  if (connection.session === undefined) connection.socket.destroy();
  else connection.session.close();
}

/** Under TLS the socket of a session is another object than the accepted one. */
function connectionKey({
  remoteAddress,
  remotePort,
}: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return `${remoteAddress}:${remotePort}`;
}
