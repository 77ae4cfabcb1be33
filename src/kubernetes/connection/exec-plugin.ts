// SPDX-License-Identifier: Apache-2.0
// A kubeconfig's exec plugin: run when its credentials are needed and those of the last run are over, one at a time, and
// ended with all that it started when it does not answer.
import type { Clock } from '../../ports/clock.ts';
import { Cancelled, TimedOut, Unauthorized } from '../../ports/errors.ts';
import { recordOf, textOf } from '../status.ts';
import type { Credentials } from './connection.ts';

/** Less than a request waits for its answer, so that who is told of it is told which of them hangs. */
const LONGEST_RUN_MS = 12_000;

export interface PluginCommand {
  readonly command: string;
  readonly args?: readonly string[] | null;
  readonly env?: readonly { readonly name: string; readonly value: string }[] | null;
  readonly apiVersion?: string;
}

interface ProgramEnd {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
}

/** Rejects when it cannot be started; the signal ends it with all that it started. */
export type RunProgram = (program: {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}) => Promise<ProgramEnd>;

export interface ExecPluginOptions {
  readonly exec: PluginCommand;
  readonly clock: Clock;
  readonly runProgram: RunProgram;
  /** Ends a run that is under way, and lets none begin. */
  readonly closing: AbortSignal;
}

interface Issued {
  readonly credentials: Credentials;
  /** Wall clock; undefined: they do not end. */
  readonly expiresAt: number | undefined;
}

export class ExecPlugin {
  readonly #options: ExecPluginOptions;
  #issued: Issued | undefined;

  constructor(options: ExecPluginOptions) {
    this.#options = options;
  }

  async credentials(): Promise<Credentials> {
    const { expiresAt = Number.POSITIVE_INFINITY } = this.#issued ?? {};
    if (this.#issued === undefined || expiresAt <= this.#options.clock.now()) {
      this.#issued = this.#read(await this.#run());
    }
    return this.#issued.credentials;
  }

  async #run(): Promise<ProgramEnd> {
    const { exec, clock, closing } = this.#options;
    if (closing.aborted) throw cancelled();
    const done = new AbortController();
    const signal = AbortSignal.any([done.signal, closing]);
    const limit = clock.sleep(LONGEST_RUN_MS, { signal }).then(
      () => Promise.reject(tooLong(exec.command)),
      () => Promise.reject(cancelled()),
    );
    try {
      return await Promise.race([this.#start(signal), limit]);
    } finally {
      done.abort();
    }
  }

  async #start(signal: AbortSignal): Promise<ProgramEnd> {
    const { exec, runProgram } = this.#options;
    const { command, args, apiVersion = 'client.authentication.k8s.io/v1' } = exec;
    const about = { apiVersion, kind: 'ExecCredential', spec: { interactive: false } };
    const own = (exec.env ?? []).map(({ name, value }) => [name, value] as const);
    const env = { KUBERNETES_EXEC_INFO: JSON.stringify(about), ...Object.fromEntries(own) };
    try {
      return await runProgram({ command, args: args ?? [], env, signal });
    } catch (error) {
      throw refused(`the exec plugin ${command} cannot be started`, error);
    }
  }

  #read({ code, output, errors }: ProgramEnd): Issued {
    const { command } = this.#options.exec;
    // What a plugin prints may be anything: it is kept as the cause, not in the message.
    if (code !== 0) {
      throw refused(`the exec plugin ${command} ended with code ${code}`, new Error(errors));
    }
    const status = recordOf(recordOf(parsed(output))['status']);
    const token = textOf(status['token']);
    const [certPem, keyPem] = [
      textOf(status['clientCertificateData']),
      textOf(status['clientKeyData']),
    ];
    if (token === '' && certPem === '') throw refused(`the exec plugin ${command} gave none`);
    const expiresAt = Date.parse(textOf(status['expirationTimestamp']));
    return {
      credentials: {
        ...(token !== '' && { authorization: `Bearer ${token}` }),
        ...(certPem !== '' && keyPem !== '' && { client: { certPem, keyPem } }),
      },
      expiresAt: Number.isNaN(expiresAt) ? undefined : expiresAt,
    };
  }
}

function tooLong(command: string): TimedOut {
  const message = `the exec plugin ${command} gave no credentials within ${LONGEST_RUN_MS} ms and was ended`;
  return new TimedOut('REQUEST_TIMED_OUT', message, {
    hint: "Run the kubeconfig's exec plugin by hand: it must answer by itself.",
    facts: { requestSent: false },
  });
}

function cancelled(): Cancelled {
  return new Cancelled('CANCELLED', 'called off while there were no credentials yet', {
    facts: { requestSent: false },
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function refused(problem: string, cause?: unknown): Unauthorized {
  return new Unauthorized('CREDENTIALS_REFUSED', `no credentials: ${problem}`, {
    cause,
    hint: "Run the kubeconfig's exec plugin by hand.",
    facts: { requestSent: false },
  });
}
