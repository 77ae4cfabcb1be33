// SPDX-License-Identifier: Apache-2.0
// Who we are, as one reading of the source says it. The official client keeps what it has read from files for a
// minute, for as long as it lives: to read anew is to begin anew.
import type { KubeConfig } from '@kubernetes/client-node';
import { PvescalerError, Unauthorized } from '../../ports/errors.ts';
import { identityOf } from './authorized-transport.ts';
import type { Credentials } from './connection.ts';
import { ExecPlugin, type ExecPluginOptions, type PluginCommand } from './exec-plugin.ts';

type Pem = string | Buffer | readonly (string | Buffer)[] | undefined;

/** What the official client fills in for a request. */
interface SignedOptions {
  headers: Record<string, string>;
  auth?: string | null;
  ca?: Pem;
  cert?: Pem;
  key?: Pem;
}

interface Reading {
  readonly config: KubeConfig;
  readonly plugin: ExecPlugin | undefined;
}

export interface LoginOptions extends Pick<ExecPluginOptions, 'clock' | 'runProgram'> {
  /** The source, read anew. */
  readonly load: () => KubeConfig;
}

export class Login {
  readonly #options: LoginOptions;
  readonly #closing = new AbortController();
  #reading: Reading | undefined;
  #asking: Promise<Credentials> | undefined;
  #last: Credentials | undefined;

  constructor(options: LoginOptions) {
    this.#options = options;
  }

  /** What the server is trusted by. */
  caPem(): Promise<string | undefined> {
    return attempt(async () => textOf((await signed(this.#read().config)).ca));
  }

  /** Asked for by many at once, it is found out once. */
  credentials(): Promise<Credentials> {
    this.#asking ??= attempt(() => this.#ask()).finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  renew(refused: Credentials): void {
    const isCurrent = this.#last !== undefined && identityOf(this.#last) === identityOf(refused);
    if (isCurrent) this.#reading = undefined;
  }

  close(): void {
    this.#closing.abort();
  }

  async #ask(): Promise<Credentials> {
    const { config, plugin } = this.#read();
    const own = credentialsOf(await signed(config));
    this.#last = { ...own, ...(await plugin?.credentials()) };
    return this.#last;
  }

  #read(): Reading {
    this.#reading ??= this.#begin();
    return this.#reading;
  }

  /** A plugin is run here: the official client would wait for it for ever. */
  #begin(): Reading {
    const { load, clock, runProgram } = this.#options;
    const config = load();
    const user = config.getCurrentUser();
    // The client has no type for it, and is as lenient with what stands there.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- see above
    const exec = user?.exec as PluginCommand | null | undefined;
    if (user === null || exec === null || exec === undefined) return { config, plugin: undefined };
    const { exec: _run, ...others } = user;
    config.users = config.users.map((one) => (one.name === user.name ? others : one));
    const closing = this.#closing.signal;
    return { config, plugin: new ExecPlugin({ exec, clock, runProgram, closing }) };
  }
}

async function attempt<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof PvescalerError) throw error;
    throw new Unauthorized('CREDENTIALS_REFUSED', 'the credentials cannot be had', {
      cause: error,
      hint: 'Check that the token and certificate files of the kubeconfig are readable.',
      facts: { requestSent: false },
    });
  }
}

async function signed(config: KubeConfig): Promise<SignedOptions> {
  const options: SignedOptions = { headers: {} };
  // The client's type is that of a request of Node's; it fills in the fields above and an agent.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion, typescript/no-unsafe-argument -- see above
  await config.applyToHTTPSOptions(options as Parameters<KubeConfig['applyToHTTPSOptions']>[0]);
  return options;
}

function credentialsOf({ headers, auth, cert, key }: SignedOptions): Credentials {
  const [certPem, keyPem] = [textOf(cert), textOf(key)];
  const basic = auth ? `Basic ${Buffer.from(auth).toString('base64')}` : undefined;
  const authorization = headers['Authorization']?.trim() ?? basic;
  return {
    ...(authorization !== undefined && { authorization }),
    ...(certPem !== undefined && keyPem !== undefined && { client: { certPem, keyPem } }),
  };
}

function textOf(pem: Pem): string | undefined {
  if (pem === undefined || typeof pem === 'string') return pem;
  return Buffer.isBuffer(pem) ? pem.toString('utf8') : pem.map((one) => String(one)).join('\n');
}
