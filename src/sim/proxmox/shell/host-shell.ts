// SPDX-License-Identifier: Apache-2.0
// The login shell of root on a simulated host: qm, pvesh, processes, and files. No real program runs.

import type { EndpointFact } from '../../../proxmox/wire-facts/index.ts';
import { ApiError } from '../api-error.ts';
import type { Core } from '../core.ts';
import { COMMANDS } from '../guest/commands/command-table.ts';
import { BUILTINS } from '../guest/shell/builtins.ts';
import type { CommandRunner } from '../guest/shell/command.ts';
import { Interpreter, PROCESS_ID } from '../guest/shell/interpreter.ts';
import type { Streams } from '../guest/shell/redirects.ts';
import type { ShellHost } from '../guest/shell/shell-host.ts';
import { absolutePath, baseName } from '../guest/system/files.ts';
import { GuestSystem } from '../guest/system/system.ts';
import { SimConnectionError } from '../http/messages.ts';
import type { RootCall } from '../http/pipeline.ts';
import { BrokenPipe, type ProgramCall } from './program.ts';
import { pvesh } from './pvesh.ts';
import { qm } from './qm.ts';

export interface ShellApi {
  runAsRoot(call: RootCall): Promise<unknown>;
  findEndpoint(method: string, path: string): EndpointFact | undefined;
}

export interface HostCommand {
  readonly command: string;
  readonly input: string;
  /** Whether output still reaches the client. */
  readonly isConnected?: () => boolean;
}

export interface HostCommandEnd {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

interface HostProcess {
  readonly parent: number;
  readonly title: string;
}

const NOT_FOUND = 127;
const KILLED_BY_PIPE = 141;
const FIRST_PROCESS_ID = 2_000;
/** Programs of the guest simulation that a host has, too. */
const SHARED_PROGRAMS = new Set(
  '[ test cat echo printf grep sed rm mkdir mktemp sleep true false head tail cut tr sort wc ls'.split(
    ' ',
  ),
);

type Variables = ReadonlyMap<string, string>;

export class HostShell {
  readonly #core: Core;
  readonly #api: ShellApi;
  readonly #host: string;
  readonly #system: GuestSystem;
  readonly #processes = new Map<number, HostProcess>();
  #nextProcess = FIRST_PROCESS_ID;

  constructor(core: Core, api: ShellApi, host: string) {
    this.#core = core;
    this.#api = api;
    this.#host = host;
    this.#system = createHostSystem(core);
  }

  /** Rejects with SimConnectionError when the host or the connection fails. */
  async run({ command, input, isConnected = () => true }: HostCommand): Promise<HostCommandEnd> {
    if (!this.isOnline) throw new SimConnectionError('ECONNREFUSED');
    const collected = { out: '', err: '' };
    const write = (stream: 'out' | 'err') => (piece: string) => {
      if (!isConnected()) throw new BrokenPipe();
      collected[stream] += piece;
    };
    const streams = {
      stdin: { text: input },
      out: write('out'),
      err: write('err'),
      budget: { steps: 0 },
    };
    const lost = Promise.withResolvers<never>();
    const session = new HostSession(this.#parts(), (error) => lost.reject(error));
    const code = await Promise.race([session.runScript(command, streams, new Map()), lost.promise]);
    if (!this.isOnline) throw new SimConnectionError('ECONNRESET');
    return { code, ...collected };
  }

  writeFile(path: string, bytes: Uint8Array, mode: string): void {
    const { files } = this.#system;
    if (!files.isDirectory(path.replace(/\/[^/]*$/, '') || '/'))
      throw new Error(`${path}: No such file or directory`);
    files.write(path, bytes, { mode });
  }

  removeFile(path: string): boolean {
    const isThere = this.#system.files.get(path) !== undefined;
    if (isThere) this.#system.files.remove(path);
    return isThere;
  }

  /** Paths of files that commands and uploads have left. */
  files(): readonly string[] {
    return this.#system.files.paths();
  }

  get isOnline(): boolean {
    return this.#core.state.hosts.get(this.#host)?.online === true;
  }

  #parts(): SessionParts {
    return {
      core: this.#core,
      api: this.#api,
      host: this.#host,
      system: this.#system,
      processes: this.#processes,
      newProcess: () => (this.#nextProcess += 1),
    };
  }
}

interface SessionParts {
  readonly core: Core;
  readonly api: ShellApi;
  readonly host: string;
  readonly system: GuestSystem;
  readonly processes: Map<number, HostProcess>;
  readonly newProcess: () => number;
}

/** One command line of a client, with the processes that it starts. */
class HostSession {
  readonly #parts: SessionParts;
  readonly #onLost: (error: SimConnectionError) => void;
  readonly #shellHost: ShellHost;

  constructor(parts: SessionParts, onLost: (error: SimConnectionError) => void) {
    this.#parts = parts;
    this.#onLost = onLost;
    const { files } = parts.system;
    const execute = (argv: readonly string[], streams: Streams, variables: Variables) =>
      this.#execute(argv, streams, variables);
    const builtinHost = {
      hasProgram: (name: string) => name in PROGRAMS || SHARED_PROGRAMS.has(name),
      read: (path: string) => files.read(path),
      isDirectory: (path: string) => files.isDirectory(path),
      execute,
    };
    this.#shellHost = {
      files,
      execute,
      builtin: (shell, [name = '', ...args], streams) => {
        const builtin = Object.hasOwn(BUILTINS, name) ? BUILTINS[name] : undefined;
        return builtin === undefined
          ? undefined
          : Promise.resolve().then(() => builtin({ shell, args, streams, host: builtinHost }));
      },
      startBackground: (run) => this.#startBackground(run),
    };
  }

  async runScript(text: string, streams: Streams, variables: Variables): Promise<number> {
    const shell = new Interpreter(this.#shellHost, {
      variables: new Map([['PATH', '/usr/sbin:/usr/bin'], ['PWD', '/root'], ...variables]),
    });
    try {
      return (await shell.runToEnd(text, streams)).code;
    } catch (error) {
      if (error instanceof BrokenPipe) return KILLED_BY_PIPE;
      throw error;
    }
  }

  #startBackground(run: (processId: number) => Promise<number>): number {
    const { processes, newProcess } = this.#parts;
    const id = newProcess();
    processes.set(id, { parent: 1, title: 'sh' });
    run(id)
      .catch((error: unknown) => {
        if (error instanceof SimConnectionError) this.#onLost(error);
        else if (!(error instanceof BrokenPipe)) throw error;
      })
      .finally(() => processes.delete(id));
    return id;
  }

  async #execute(argv: readonly string[], streams: Streams, variables: Variables): Promise<number> {
    const [path = '', ...args] = argv;
    const name = baseName(path);
    const run = { args, streams, variables };
    const program = Object.hasOwn(PROGRAMS, name) ? PROGRAMS[name] : undefined;
    if (program !== undefined) return this.#runProgram(name, program, run);
    if (SHARED_PROGRAMS.has(name)) return this.#runShared(name, run);
    return this.#runSystemProgram(name, run);
  }

  async #runSystemProgram(name: string, run: ProgramRun): Promise<number> {
    const { args, streams, variables } = run;
    switch (name) {
      case 'sh':
      case 'bash':
        return this.#runShell(run);
      case 'setsid':
      case 'env':
        return this.#execute(args, streams, variables);
      case 'uname':
        streams.out(args.includes('-n') ? `${this.#parts.host}\n` : 'Linux\n');
        return 0;
      case 'pgrep':
        return this.#printChildren(args, ['-P'], (id) => String(id), streams);
      case 'ps':
        return this.#printChildren(args, ['--ppid'], (_, { title }) => title, streams);
      default:
        streams.err(`sh: 1: ${name}: not found\n`);
        return NOT_FOUND;
    }
  }

  async #runShell({ args, streams, variables }: ProgramRun): Promise<number> {
    if (args[0] === '-c') return this.runScript(args[1] ?? '', streams, variables);
    const { stdin } = streams;
    const { text } = stdin;
    stdin.text = '';
    return this.runScript(text, streams, variables);
  }

  /** Prints the processes of a parent; exit code 1 when it has none. */
  // oxlint-disable-next-line max-params -- a private helper of two programs
  #printChildren(
    args: readonly string[],
    [option = '']: readonly string[],
    format: (id: number, process: HostProcess) => string,
    streams: Streams,
  ): number {
    const parent = Number(args[args.indexOf(option) + 1]);
    const children = [...this.#parts.processes].filter(([, each]) => each.parent === parent);
    for (const [id, each] of children) streams.out(`${format(id, each)}\n`);
    return children.length === 0 ? 1 : 0;
  }

  async #runProgram(name: string, program: Program, run: ProgramRun): Promise<number> {
    const { core, api, host, system, processes, newProcess } = this.#parts;
    const id = newProcess();
    const parent = Number(run.variables.get(PROCESS_ID) ?? 1);
    processes.set(id, { parent, title: `/usr/bin/perl -T /usr/bin/${name} ${run.args.join(' ')}` });
    try {
      return await program({
        core,
        host,
        args: run.args,
        streams: run.streams,
        runAsRoot: (call) => api.runAsRoot(call),
        findEndpoint: (method, path) => api.findEndpoint(method, path),
        readFile: (path) => system.files.bytes(path),
        removeFile: (path) => system.files.remove(path),
        withChild: async (title, work) => {
          const worker = newProcess();
          processes.set(worker, { parent: id, title });
          try {
            return await work();
          } finally {
            processes.delete(worker);
          }
        },
      });
    } catch (error) {
      if (error instanceof BrokenPipe) return 255;
      throw error;
    } finally {
      processes.delete(id);
    }
  }

  async #runShared(name: string, { args, streams, variables }: ProgramRun): Promise<number> {
    const { system } = this.#parts;
    const directory = variables.get('PWD') ?? '/';
    let consumed: string | undefined;
    const result = await COMMANDS[name]?.({
      name,
      args,
      input: streams.stdin,
      get stdin() {
        consumed ??= streams.stdin.text;
        streams.stdin.text = '';
        return consumed;
      },
      variables,
      system,
      runner: NO_RUNNER,
      path: (relative) =>
        absolutePath(relative.startsWith('/') ? relative : `${directory}/${relative}`),
    });
    if (result?.out !== undefined && result.out !== '') streams.out(result.out);
    if (result?.err !== undefined && result.err !== '') streams.err(result.err);
    return result?.code ?? NOT_FOUND;
  }
}

interface ProgramRun {
  readonly args: readonly string[];
  readonly streams: Streams;
  readonly variables: Variables;
}

type Program = (call: ProgramCall) => Promise<number>;

const PROGRAMS: Readonly<Record<string, Program>> = { pvesh, qm };

/** None of the shared programs runs another one. */
const NO_RUNNER: CommandRunner = {
  runScript: () => Promise.reject(new ApiError(500, 'not simulated')),
  runProgram: () => Promise.reject(new ApiError(500, 'not simulated')),
  hasProgram: () => false,
};

/** The files and the time of a host, in the form that the shared programs need. */
function createHostSystem({ state }: Core): GuestSystem {
  return new GuestSystem({
    input: {
      vmId: 0,
      smbiosUuid: '',
      cpus: 1,
      memoryBytes: 0,
      interfaces: [],
      disk: { image: undefined, isFirstBoot: false, sizeBytes: 0, state: undefined },
      seedIso: undefined,
      cloudInitDrive: undefined,
      agentEnabled: false,
      behaviour: 'normal',
      clock: state.clock,
      random: state.random,
      speed: state.speed,
      leaseAddress: () => '',
    },
    disk: undefined,
    history: { commandsRun: [], downloads: [], joinAttempts: [], warnings: [], errors: [] },
    signal: new AbortController().signal,
    onChange: () => undefined,
  });
}
