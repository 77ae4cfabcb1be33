// SPDX-License-Identifier: Apache-2.0
// The connections of a listener. Those over which calls are made stay: the autoscaler keeps one for as long as it
// lives. Those that are opened and not used go, and sooner when others wait for their place.
import type {
  Http2SecureServer,
  Http2Server,
  Http2Session,
  ServerHttp2Session,
  ServerHttp2Stream,
} from 'node:http2';
import type { Socket } from 'node:net';
import type { Clock } from '../../ports/clock.ts';

const CONNECTIONS_MAX = 2_000;

/** From its beginning to its first call; who is cut connects again when there is something to call. */
const FIRST_CALL_WITHIN_MS = 30_000;

/** The autoscaler calls several times a minute, and Go's client itself gives up a connection after half an hour. */
const IDLE_MAX_MS = 3_600_000;

const LOOK_EVERY_MS = 5_000;
const PROBE_PEER_AFTER_MS = 60_000;

interface Connection {
  readonly socket: Socket;
  session: ServerHttp2Session | undefined;
  /** Of the beginning, then of the last call. */
  since: number;
  isUsed: boolean;
  callsOpen: number;
  isToldToGo: boolean;
}

export class Connections {
  readonly #clock: Clock;
  /** Oldest first. */
  readonly #all = new Map<string, Connection>();
  readonly #bySession = new WeakMap<Http2Session, Connection>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  follow(server: Http2Server | Http2SecureServer): void {
    // Before the server's own listener: that one may begin the session at once.
    server.prependListener('connection', (socket: Socket) => this.#open(socket));
    server.on('session', (session: ServerHttp2Session) => {
      // Resets and broken frames end a session, never the process.
      session.on('error', () => undefined);
      const connection = this.#all.get(keyOf(session.socket));
      if (connection === undefined) return session.destroy();
      connection.session = session;
      this.#bySession.set(session, connection);
    });
  }

  /** A call that is refused for its name or form is none: whoever makes only such ones is cut too. */
  callBegins(stream: ServerHttp2Stream): void {
    const connection =
      stream.session === undefined ? undefined : this.#bySession.get(stream.session);
    if (connection === undefined) return;
    connection.isUsed = true;
    connection.callsOpen += 1;
    stream.once('close', () => {
      connection.callsOpen -= 1;
      connection.since = this.#clock.monotonic();
    });
  }

  /** Until the signal. */
  async sweep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#clock.sleep(LOOK_EVERY_MS, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      for (const connection of this.#all.values()) this.#look(connection);
    }
  }

  /** What was begun on them ends; whatever comes next needs a new connection. */
  sayGoodbye(): void {
    for (const connection of this.#all.values()) tellToGo(connection);
  }

  cut(): void {
    for (const { session, socket } of this.#all.values()) {
      session?.destroy();
      socket.destroy();
    }
  }

  #open(socket: Socket): void {
    socket.on('error', () => undefined);
    if (this.#all.size >= CONNECTIONS_MAX && !this.#evictOne()) return void socket.destroy();
    socket.setKeepAlive(true, PROBE_PEER_AFTER_MS);
    const key = keyOf(socket);
    this.#all.set(key, {
      socket,
      session: undefined,
      since: this.#clock.monotonic(),
      isUsed: false,
      callsOpen: 0,
      isToldToGo: false,
    });
    socket.once('close', () => this.#all.delete(key));
  }

  #evictOne(): boolean {
    const [key, connection] = this.#mostIdle() ?? [];
    if (key === undefined || connection === undefined) return false;
    this.#all.delete(key);
    connection.session?.destroy();
    connection.socket.destroy();
    return true;
  }

  /** The oldest that has never made a call; else the one whose last call is longest ago. */
  #mostIdle(): readonly [string, Connection] | undefined {
    let found: readonly [string, Connection] | undefined;
    for (const one of this.#all) {
      const [, { isUsed, callsOpen, since }] = one;
      if (!isUsed) return one;
      if (callsOpen === 0 && since < (found?.[1].since ?? Number.POSITIVE_INFINITY)) found = one;
    }
    return found;
  }

  #look(connection: Connection): void {
    const { isUsed, callsOpen, since } = connection;
    const patience = isUsed ? IDLE_MAX_MS : FIRST_CALL_WITHIN_MS;
    if (callsOpen > 0 || this.#clock.monotonic() - since < patience) return;
    if (!connection.isToldToGo) return tellToGo(connection);
    connection.session?.destroy();
    connection.socket.destroy();
  }
}

/** One that has no session yet has not said a word of TLS. */
function tellToGo(connection: Connection): void {
  connection.isToldToGo = true;
  if (connection.session === undefined) connection.socket.destroy();
  else connection.session.close();
}

/** The socket of a session is another object than the one that was accepted, under TLS. */
function keyOf({
  remoteAddress,
  remotePort,
}: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return `${remoteAddress}:${remotePort}`;
}
