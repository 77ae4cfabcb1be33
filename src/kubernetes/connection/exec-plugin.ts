// SPDX-License-Identifier: Apache-2.0
// A kubeconfig's exec plugin. Runs when the credentials of the last run have expired, one run at a time. A run that
// takes too long is killed with its child processes.
import type { Clock } from '../../ports/clock.ts';
import { Cancelled, TimedOut, Unauthorized } from '../../ports/errors.ts';
import { asRecord, asString } from '../status.ts';
import type { Credentials } from './connection.ts';

/** Less than the request timeout, so that the error names the plugin and not the API server. */
const MAX_RUN_MS = 12_000;

export interface ExecPluginCommand {
  readonly command: string;
  readonly args?: readonly string[] | null;
  readonly env?: readonly { readonly name: string; readonly value: string }[] | null;
  readonly apiVersion?: string;
}

interface ProgramResult {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
}

/** Rejects when the program cannot be started; the signal kills it with its child processes. */
export type RunProgram = (program: {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}) => Promise<ProgramResult>;

export interface ExecPluginOptions {
  readonly exec: ExecPluginCommand;
  readonly clock: Clock;
  readonly runProgram: RunProgram;
  /** Kills a running plugin and prevents new runs. */
  readonly closing: AbortSignal;
}

interface IssuedCredentials {
  readonly credentials: Credentials;
  /** Wall clock; undefined: they never expire. */
  readonly expiresAt: number | undefined;
}

export class ExecPlugin {
  readonly #options: ExecPluginOptions;
  #issued: IssuedCredentials | undefined;

  constructor(options: ExecPluginOptions) {
    this.#options = options;
  }

  async credentials(): Promise<Credentials> {
    const { expiresAt = Number.POSITIVE_INFINITY } = this.#issued ?? {};
    if (this.#issued === undefined || expiresAt <= this.#options.clock.now()) {
      this.#issued = this.#parse(await this.#run());
    }
    return this.#issued.credentials;
  }

  async #run(): Promise<ProgramResult> {
    const { exec, clock, closing } = this.#options;
    if (closing.aborted) throw cancelled();
    const done = new AbortController();
    const signal = AbortSignal.any([done.signal, closing]);
    const limit = clock.sleep(MAX_RUN_MS, { signal }).then(
      () => Promise.reject(timedOut(exec.command)),
      () => Promise.reject(cancelled()),
    );
    try {
      return await Promise.race([this.#start(signal), limit]);
    } finally {
      done.abort();
    }
  }

  async #start(signal: AbortSignal): Promise<ProgramResult> {
    const { exec, runProgram } = this.#options;
    const { command, args, apiVersion = 'client.authentication.k8s.io/v1' } = exec;
    const execInfo = { apiVersion, kind: 'ExecCredential', spec: { interactive: false } };
    const ownEnv = (exec.env ?? []).map(({ name, value }) => [name, value] as const);
    const env = { KUBERNETES_EXEC_INFO: JSON.stringify(execInfo), ...Object.fromEntries(ownEnv) };
    try {
      return await runProgram({ command, args: args ?? [], env, signal });
    } catch (error) {
      throw noCredentials(`the exec plugin ${command} cannot be started`, error);
    }
  }

  #parse({ code, output, errors }: ProgramResult): IssuedCredentials {
    const { command } = this.#options.exec;
    // The plugin's output may contain secrets: keep it as the cause, not in the message.
    if (code !== 0) {
      throw noCredentials(`the exec plugin ${command} exited with code ${code}`, new Error(errors));
    }
    const status = asRecord(asRecord(parseJson(output))['status']);
    const token = asString(status['token']);
    const [certPem, keyPem] = [
      asString(status['clientCertificateData']),
      asString(status['clientKeyData']),
    ];
    if (token === '' && certPem === '')
      throw noCredentials(`the exec plugin ${command} returned neither a token nor a certificate`);
    const expiresAt = Date.parse(asString(status['expirationTimestamp']));
    return {
      credentials: {
        ...(token !== '' && { authorization: `Bearer ${token}` }),
        ...(certPem !== '' && keyPem !== '' && { client: { certPem, keyPem } }),
      },
      expiresAt: Number.isNaN(expiresAt) ? undefined : expiresAt,
    };
  }
}

function timedOut(command: string): TimedOut {
  const message = `the exec plugin ${command} returned no credentials within ${MAX_RUN_MS} ms and was killed`;
  return new TimedOut('REQUEST_TIMED_OUT', message, {
    hint: "Run the kubeconfig's exec plugin by hand: it must finish without input.",
    facts: { requestSent: false },
  });
}

function cancelled(): Cancelled {
  return new Cancelled('CANCELLED', 'cancelled before the exec plugin returned credentials', {
    facts: { requestSent: false },
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function noCredentials(problem: string, cause?: unknown): Unauthorized {
  return new Unauthorized('CREDENTIALS_REFUSED', `no credentials: ${problem}`, {
    cause,
    hint: "Run the kubeconfig's exec plugin by hand and correct what it reports.",
    facts: { requestSent: false },
  });
}
