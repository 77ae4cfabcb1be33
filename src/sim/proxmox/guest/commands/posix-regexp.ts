// SPDX-License-Identifier: Apache-2.0
import { escapeRegExp } from '../shell/expand.ts';

export interface RegExpDialect {
  readonly extended: boolean;
  readonly fixed?: boolean;
  readonly flags?: string;
}

/** Compiles a POSIX pattern to a RegExp. In basic syntax a backslash makes ( ) { } + ? | special instead of literal. */
export function compileRegExp(pattern: string, dialect: RegExpDialect): RegExp | undefined {
  try {
    return new RegExp(translatePattern(pattern, dialect), dialect.flags ?? '');
  } catch {
    return undefined;
  }
}

function translatePattern(pattern: string, dialect: RegExpDialect): string {
  if (dialect.fixed === true) return escapeRegExp(pattern);
  const classes = pattern.replaceAll('[:space:]', '\\s').replaceAll('[:digit:]', '\\d');
  if (dialect.extended) return classes;
  return classes.replace(/\\([(){}+?|])|([(){}+?|])/g, (_, escaped?: string, plain?: string) =>
    escaped === undefined ? `\\${plain ?? ''}` : escaped,
  );
}
