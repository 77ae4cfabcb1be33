// SPDX-License-Identifier: Apache-2.0
// One run of the command line: what its global options decide, its exit code, and how its errors are printed.
import { type Command, Option } from 'commander';
import { ERROR_CODES } from '../ports/error-codes.ts';
import type { PvescalerError } from '../ports/errors.ts';
import { type Colors, chooseColors, paint } from './colors.ts';
import type { CliContext, ProgramHost } from './context.ts';
import { wantsJson } from './output-option.ts';
import { commandPath, usageHint } from './usage-error.ts';

interface GlobalOptions {
  readonly quiet?: true;
  /** False with --no-color. */
  readonly color?: boolean;
}

const CLEAR_LINE = '\r\u001b[K';
const DEFAULT_COLUMNS = 80;

export function addGlobalOptions(command: Command): void {
  const group = 'Global options:';
  command
    .addOption(new Option('-q, --quiet', 'print only results and errors').helpGroup(group))
    .addOption(new Option('--no-color', 'print without colors, as with NO_COLOR').helpGroup(group));
}

function ancestorsOf({ parent }: Command): readonly Command[] {
  return parent === null ? [] : [parent, ...ancestorsOf(parent)];
}

export class Invocation implements ProgramHost {
  readonly context: CliContext;
  readonly isJson: boolean;
  exitCode = 0;
  readonly #process: CliContext;
  #isQuiet = false;
  #isColorRefused = false;
  #command: Command | undefined;
  #status = '';

  constructor(process: CliContext, args: readonly string[]) {
    this.#process = process;
    this.isJson = wantsJson(args);
    this.context = {
      ...process,
      out: (text) => {
        this.showStatus('');
        process.out(text);
      },
      err: (text) => {
        if (this.#isQuiet) return;
        this.showStatus('');
        process.err(text);
      },
    };
  }

  /** Called before the action of the command. */
  begin(command: Command): void {
    this.#command = command;
    const chain = [command, ...ancestorsOf(command)].map((one) => one.opts<GlobalOptions>());
    this.#isQuiet = chain.some(({ quiet }) => quiet === true);
    this.#isColorRefused = chain.some(({ color }) => color === false);
  }

  get colors(): Colors {
    return chooseColors(this.#process, this.#isColorRefused);
  }

  exitWith(code: number): void {
    this.exitCode = code;
  }

  showStatus(line: string): void {
    const { isTerminal, columns = DEFAULT_COLUMNS } = this.#process;
    if (line === this.#status || !isTerminal.err || this.#isQuiet) return;
    this.#status = line;
    this.#process.err(`${CLEAR_LINE}${line.slice(0, columns - 1)}`);
  }

  printError(text: string): void {
    this.showStatus('');
    this.#process.err(text);
  }

  /** Prints the error and returns its exit code. */
  reportError(error: PvescalerError): number {
    const { code, message, facts } = error;
    const hint = this.#hintOf(error);
    const command = this.#command && commandPath(this.#command);
    if (this.isJson) {
      this.printError(
        `${JSON.stringify({ class: error.class, code, message, hint, command, facts })}\n`,
      );
    } else {
      const name = (code === 'USAGE' ? command : undefined) ?? 'pvescaler';
      const title = paint(`${name}:`, this.colors.err ? 'red' : undefined);
      this.printError(`${title} ${message}\n  ${hint} [${code}]\n`);
    }
    if (this.#process.environment['PVESCALER_DEBUG'] === '1') {
      this.printError(`${error.stack ?? ''}\n`);
    }
    return error.externalCodes.exitCode;
  }

  /** The hint of the code names no command; the command that ran has options of its own. */
  #hintOf({ code, hint }: PvescalerError): string {
    const isGeneral = hint === ERROR_CODES.USAGE.hint;
    return code === 'USAGE' && isGeneral && this.#command !== undefined
      ? usageHint(this.#command)
      : hint;
  }
}
