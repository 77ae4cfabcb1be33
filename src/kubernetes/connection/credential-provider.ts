// SPDX-License-Identifier: Apache-2.0
// Reads credentials through the official client. That client caches files for a minute, so reading them again
// requires a new instance of it.
import type { KubeConfig } from '@kubernetes/client-node';
import { PvescalerError, Unauthorized } from '../../ports/errors.ts';
import { credentialsKey } from './authenticated-transport.ts';
import type { Credentials } from './connection.ts';
import { ExecPlugin, type ExecPluginCommand, type ExecPluginOptions } from './exec-plugin.ts';

type Pem = string | Buffer | readonly (string | Buffer)[] | undefined;

/** The fields that the official client sets for a request. */
interface RequestOptions {
  headers: Record<string, string>;
  auth?: string | null;
  ca?: Pem;
  cert?: Pem;
  key?: Pem;
}

interface LoadedConfig {
  readonly config: KubeConfig;
  readonly plugin: ExecPlugin | undefined;
}

export interface CredentialProviderOptions extends Pick<ExecPluginOptions, 'clock' | 'runProgram'> {
  /** Reads the source again. */
  readonly load: () => KubeConfig;
}

export class CredentialProvider {
  readonly #options: CredentialProviderOptions;
  readonly #closing = new AbortController();
  #loaded: LoadedConfig | undefined;
  #pending: Promise<Credentials> | undefined;
  #lastCredentials: Credentials | undefined;

  constructor(options: CredentialProviderOptions) {
    this.#options = options;
  }

  /** CA bundle that the server is verified against. */
  caPem(): Promise<string | undefined> {
    return translateErrors(async () => pemText((await readOptions(this.#load().config)).ca));
  }

  /** Concurrent calls share one read. */
  credentials(): Promise<Credentials> {
    this.#pending ??= translateErrors(() => this.#readCredentials()).finally(() => {
      this.#pending = undefined;
    });
    return this.#pending;
  }

  renew(refused: Credentials): void {
    const isCurrent =
      this.#lastCredentials !== undefined &&
      credentialsKey(this.#lastCredentials) === credentialsKey(refused);
    if (isCurrent) this.#loaded = undefined;
  }

  close(): void {
    this.#closing.abort();
  }

  async #readCredentials(): Promise<Credentials> {
    const { config, plugin } = this.#load();
    const own = parseCredentials(await readOptions(config));
    this.#lastCredentials = { ...own, ...(await plugin?.credentials()) };
    return this.#lastCredentials;
  }

  #load(): LoadedConfig {
    this.#loaded ??= this.#loadAgain();
    return this.#loaded;
  }

  /** Takes the exec plugin out of the config and runs it here: the official client would wait for it without limit. */
  #loadAgain(): LoadedConfig {
    const { load, clock, runProgram } = this.#options;
    const config = load();
    const user = config.getCurrentUser();
    // The client declares no type for it and does not validate it either.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- see above
    const exec = user?.exec as ExecPluginCommand | null | undefined;
    if (user === null || exec === null || exec === undefined) return { config, plugin: undefined };
    const { exec: _exec, ...userWithoutExec } = user;
    config.users = config.users.map((one) => (one.name === user.name ? userWithoutExec : one));
    const closing = this.#closing.signal;
    return { config, plugin: new ExecPlugin({ exec, clock, runProgram, closing }) };
  }
}

async function translateErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof PvescalerError) throw error;
    throw new Unauthorized('CREDENTIALS_REFUSED', 'the credentials cannot be read', {
      cause: error,
      hint: 'Check that the token and certificate files of the kubeconfig are readable.',
      facts: { requestSent: false },
    });
  }
}

async function readOptions(config: KubeConfig): Promise<RequestOptions> {
  const options: RequestOptions = { headers: {} };
  // The client's type is Node's RequestOptions; it sets the fields above and an agent.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion, typescript/no-unsafe-argument -- see above
  await config.applyToHTTPSOptions(options as Parameters<KubeConfig['applyToHTTPSOptions']>[0]);
  return options;
}

function parseCredentials({ headers, auth, cert, key }: RequestOptions): Credentials {
  const [certPem, keyPem] = [pemText(cert), pemText(key)];
  const basic = auth ? `Basic ${Buffer.from(auth).toString('base64')}` : undefined;
  const authorization = headers['Authorization']?.trim() ?? basic;
  return {
    ...(authorization !== undefined && { authorization }),
    ...(certPem !== undefined && keyPem !== undefined && { client: { certPem, keyPem } }),
  };
}

function pemText(pem: Pem): string | undefined {
  if (pem === undefined || typeof pem === 'string') return pem;
  return Buffer.isBuffer(pem) ? pem.toString('utf8') : pem.map((one) => String(one)).join('\n');
}
