// SPDX-License-Identifier: Apache-2.0
const CODES = { bold: 1, red: 31, yellow: 33 } as const;

/** With `undefined` the text stays as it is. */
export function paint(text: string, style: keyof typeof CODES | undefined): string {
  return style === undefined ? text : `\u001b[${CODES[style]}m${text}\u001b[0m`;
}

export interface Colors {
  readonly out: boolean;
  readonly err: boolean;
}

interface ColorContext {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Whether a person reads what is written there. */
  readonly isTerminal: Colors;
}

/** `--no-color` and NO_COLOR win over FORCE_COLOR; without them a terminal gets colors. */
export function chooseColors(
  { environment, isTerminal }: ColorContext,
  isRefused: boolean,
): Colors {
  const { NO_COLOR = '', FORCE_COLOR = '', TERM = '' } = environment;
  if (isRefused || NO_COLOR !== '' || FORCE_COLOR === '0') return { out: false, err: false };
  if (FORCE_COLOR !== '') return { out: true, err: true };
  return TERM === 'dumb' ? { out: false, err: false } : isTerminal;
}
