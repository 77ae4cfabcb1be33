// SPDX-License-Identifier: Apache-2.0
import { type ExpansionContext, expandText } from './expand.ts';
import type { Redirect } from './syntax.ts';

/** The remaining input; reading consumes it. */
export interface Stdin {
  text: string;
}

export interface Streams {
  readonly stdin: Stdin;
  readonly out: (piece: string) => void;
  readonly err: (piece: string) => void;
  /** Counts the steps of a script and of all scripts that it starts. */
  readonly budget: { steps: number };
  /** The command is a condition: its failure does not end the script under `set -e`. */
  readonly guarded?: boolean;
}

export interface ShellFiles {
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
  readonly files: ShellFiles;
}

/** Stored as an exported variable so that programs use the umask too. The space prevents a clash with real names. */
export const UMASK = ' umask';

/** The mode of a new file. */
export function newFileMode(variables: ReadonlyMap<string, string>): string {
  const mask = Number.parseInt(variables.get(UMASK) ?? '022', 8) || 0;
  return (0o666 & ~mask).toString(8).padStart(4, '0');
}

type Sink = (piece: string) => void;

/** Returns the redirected streams; undefined, with a message on stderr, when a redirection fails. */
export async function applyRedirects(input: RedirectInput): Promise<Streams | undefined> {
  let { streams } = input;
  for (const redirect of input.redirects) {
    const target = await expandTarget(input.context, redirect);
    const next = applyRedirect(streams, {
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

async function expandTarget(context: ExpansionContext, redirect: Redirect): Promise<string> {
  const target = await expandText(context, redirect.target);
  const isPath = redirect.operator !== 'here' && redirect.operator !== '>&';
  if (!isPath || target === '' || target.startsWith('/')) return target;
  return `${context.scope.variables.get('PWD') ?? ''}/${target}`;
}

interface ResolvedRedirect {
  readonly redirect: Redirect;
  readonly target: string;
  readonly files: ShellFiles;
  readonly newMode: string;
}

function applyRedirect(streams: Streams, one: ResolvedRedirect): Streams | string {
  const { redirect, target, files } = one;
  switch (redirect.operator) {
    case 'here':
      return { ...streams, stdin: { text: target } };
    case '<':
      return readFromFile(streams, target, files);
    case '>&':
      return duplicateSink(streams, redirect.fd, target);
    case '&>': {
      const sink = openFileSink(one, false);
      return typeof sink === 'string' ? sink : { ...streams, out: sink, err: sink };
    }
    case '>':
    case '>>': {
      const sink = openFileSink(one, redirect.operator === '>>');
      return typeof sink === 'string' ? sink : replaceSink(streams, redirect.fd, sink);
    }
  }
}

function readFromFile(streams: Streams, path: string, files: ShellFiles): Streams | string {
  const text = path === '/dev/null' ? '' : files.read(path);
  return text === undefined ? `cannot open ${path}: No such file` : { ...streams, stdin: { text } };
}

function duplicateSink(streams: Streams, fd: number, sourceFd: string): Streams {
  if (sourceFd === '1') return replaceSink(streams, fd, streams.out);
  if (sourceFd === '2') return replaceSink(streams, fd, streams.err);
  return streams;
}

function replaceSink(streams: Streams, fd: number, sink: Sink): Streams {
  if (fd === 1) return { ...streams, out: sink };
  return fd === 2 ? { ...streams, err: sink } : streams;
}

function openFileSink(
  { target, files, newMode }: ResolvedRedirect,
  append: boolean,
): Sink | string {
  if (/^\/dev\/(null|console|tty|kmsg|stdout|stderr)/.test(target)) return () => undefined;
  const parent = target.replace(/\/[^/]*$/, '') || '/';
  if (files.isDirectory(target)) return `cannot create ${target}: Is a directory`;
  if (/^\/(?!proc\/|sys\/)/.test(target) && !files.isDirectory(parent)) {
    return `cannot create ${target}: Directory nonexistent`;
  }
  if (target === '') return 'cannot create : Directory nonexistent';
  files.write(target, '', { append, newMode });
  // A file that was removed meanwhile stays removed.
  return (piece) => {
    if (files.read(target) !== undefined) files.write(target, piece, { append: true });
  };
}
