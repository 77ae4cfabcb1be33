// SPDX-License-Identifier: Apache-2.0

export interface Dialect {
  readonly extended: boolean;
  readonly fixed?: boolean;
  readonly flags?: string;
}

/** POSIX to ours. Basic expressions have the meaning of backslashes before ( ) { } + ? | turned round. */
export function regularExpression(pattern: string, dialect: Dialect): RegExp | undefined {
  try {
    return new RegExp(sourceOf(pattern, dialect), dialect.flags ?? '');
  } catch {
    return undefined;
  }
}

function sourceOf(pattern: string, dialect: Dialect): string {
  if (dialect.fixed === true) return literal(pattern);
  const classes = pattern.replaceAll('[:space:]', '\\s').replaceAll('[:digit:]', '\\d');
  if (dialect.extended) return classes;
  return classes.replace(/\\([(){}+?|])|([(){}+?|])/g, (_, escaped?: string, plain?: string) =>
    escaped === undefined ? `\\${plain ?? ''}` : escaped,
  );
}

/** A text as a pattern that matches itself. */
export function literal(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
