// SPDX-License-Identifier: Apache-2.0
import { type ExpansionContext, expandText } from './expand.ts';
import type { Redirect } from './syntax.ts';

/** What is left to read; emptied by whoever reads it. */
export interface Stdin {
  text: string;
}

export interface Streams {
  readonly stdin: Stdin;
  readonly out: (piece: string) => void;
  readonly err: (piece: string) => void;
  /** Counts the commands of a script and of all that it starts. */
  readonly budget: { steps: number };
  /** The command is a condition: its failure does not end the script under `set -e`. */
  readonly guarded?: boolean;
}

export interface Files {
  read(path: string): string | undefined;
  write(
    path: string,
    content: string,
    options?: { readonly append?: boolean; readonly newMode?: string },
  ): void;
  isDirectory(path: string): boolean;
}

export interface RedirectInput {
  readonly redirects: readonly Redirect[];
  readonly streams: Streams;
  readonly context: ExpansionContext;
  readonly files: Files;
}

/** Handed on like a variable, so that programs make their files with it too. */
export const UMASK = ' umask';

/** The mode of a new file. */
export function newFileMode(variables: ReadonlyMap<string, string>): string {
  const mask = Number.parseInt(variables.get(UMASK) ?? '022', 8) || 0;
  return (0o666 & ~mask).toString(8).padStart(4, '0');
}

type Sink = (piece: string) => void;

/** The streams with all redirections in place; undefined (and a message) when one cannot be made. */
export async function applyRedirects(input: RedirectInput): Promise<Streams | undefined> {
  let { streams } = input;
  for (const redirect of input.redirects) {
    const target = await targetOf(input.context, redirect);
    const next = applyOne(streams, {
      redirect,
      target,
      files: input.files,
      newMode: newFileMode(input.context.scope.variables),
    });
    if (typeof next === 'string') {
      input.streams.err(`sh: ${next}\n`);
      return undefined;
    }
    streams = next;
  }
  return streams;
}

async function targetOf(context: ExpansionContext, redirect: Redirect): Promise<string> {
  const target = await expandText(context, redirect.target);
  const isPath = redirect.operator !== 'here' && redirect.operator !== '>&';
  if (!isPath || target === '' || target.startsWith('/')) return target;
  return `${context.scope.variables.get('PWD') ?? ''}/${target}`;
}

interface One {
  readonly redirect: Redirect;
  readonly target: string;
  readonly files: Files;
  readonly newMode: string;
}

function applyOne(streams: Streams, one: One): Streams | string {
  const { redirect, target, files } = one;
  switch (redirect.operator) {
    case 'here':
      return { ...streams, stdin: { text: target } };
    case '<': {
      const text = target === '/dev/null' ? '' : files.read(target);
      return text === undefined
        ? `cannot open ${target}: No such file`
        : { ...streams, stdin: { text } };
    }
    case '>&':
      if (target === '1') return withSink(streams, redirect.fd, streams.out);
      if (target === '2') return withSink(streams, redirect.fd, streams.err);
      return streams;
    case '&>': {
      const sink = fileSink(one, false);
      return typeof sink === 'string' ? sink : { ...streams, out: sink, err: sink };
    }
    default: {
      const sink = fileSink(one, redirect.operator === '>>');
      return typeof sink === 'string' ? sink : withSink(streams, redirect.fd, sink);
    }
  }
}

function withSink(streams: Streams, fd: number, sink: Sink): Streams {
  if (fd === 1) return { ...streams, out: sink };
  return fd === 2 ? { ...streams, err: sink } : streams;
}

function fileSink({ target, files, newMode }: One, append: boolean): Sink | string {
  if (/^\/dev\/(null|console|tty|kmsg|stdout|stderr)/.test(target)) return () => undefined;
  const parent = target.replace(/\/[^/]*$/, '') || '/';
  if (files.isDirectory(target)) return `cannot create ${target}: Is a directory`;
  if (/^\/(?!proc\/|sys\/)/.test(target) && !files.isDirectory(parent)) {
    return `cannot create ${target}: Directory nonexistent`;
  }
  if (target === '') return 'cannot create : Directory nonexistent';
  files.write(target, '', { append, newMode });
  return (piece) => files.write(target, piece, { append: true });
}
