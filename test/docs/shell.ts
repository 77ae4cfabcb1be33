// SPDX-License-Identifier: Apache-2.0
// Splits the shell scripts of the documentation into commands. Knows the part of the syntax that the documentation uses.

/** The words of one command, unquoted; without assignments, redirections and shell keywords. */
export type ShellCommand = readonly string[];

const SEPARATOR = /^(?:&&|\|\||[;|&\n])/;
const REDIRECTION = /^\d?(?:>>|>&\d|<<<|<<-?|>|<(?!\())/;
const KEYWORDS = new Set(['until', 'while', 'if', 'do', 'then', 'else', '!', '{']);
const ENDS = new Set(['done', 'fi', '}']);

export function splitScript(script: string): readonly ShellCommand[] {
  const commands: string[][] = [];
  let words: string[] = [];
  let rest = removeHereDocuments(script).replaceAll('\\\n', ' ');
  let skipsWord = false;
  while (rest !== '') {
    const blank = /^(?:[ \t]+|#[^\n]*)/.exec(rest)?.[0];
    const separator = SEPARATOR.exec(rest)?.[0];
    const redirection = REDIRECTION.exec(rest)?.[0];
    if (blank !== undefined) rest = rest.slice(blank.length);
    else if (redirection !== undefined) {
      skipsWord = !redirection.includes('&');
      rest = rest.slice(redirection.length);
    } else if (separator !== undefined) {
      commands.push(words);
      words = [];
      rest = rest.slice(separator.length);
    } else {
      const word = readWord(rest);
      commands.push(...word.inner.flatMap((inner) => splitScript(inner).map((one) => [...one])));
      if (!skipsWord) words.push(word.text);
      skipsWord = false;
      rest = rest.slice(word.length);
    }
  }
  return [...commands, words].map(stripShell).filter((one) => one.length > 0);
}

function stripShell(words: readonly string[]): ShellCommand {
  const first = words.findIndex(
    (word) => !KEYWORDS.has(word) && !ENDS.has(word) && !/^\w+(?:\(\)$|=)/.test(word),
  );
  return first < 0 ? [] : words.slice(first).filter((word) => word !== '}');
}

function removeHereDocuments(script: string): string {
  return script.replaceAll(/<<-?'?(\w+)'?([^\n]*)\n[^]*?^\1$/gm, '$2');
}

interface Word {
  readonly text: string;
  readonly length: number;
  /** Scripts of command and process substitutions. */
  readonly inner: readonly string[];
}

function readWord(text: string): Word {
  const parts: string[] = [];
  const inner: string[] = [];
  let at = 0;
  while (at < text.length) {
    const rest = text.slice(at);
    const substitution = /^[$<]\(/.test(rest) ? readSubstitution(rest) : undefined;
    const quoted = /^'[^']*'|^"(?:\$\([^]*?\)|[^"])*"/.exec(rest)?.[0];
    if (substitution !== undefined) {
      inner.push(substitution.slice(2, -1));
      parts.push(substitution);
      at += substitution.length;
    } else if (quoted !== undefined) {
      inner.push(...[...quoted.matchAll(/\$\(([^]*?)\)/g)].map(([, one = '']) => one));
      parts.push(quoted.slice(1, -1));
      at += quoted.length;
    } else if (/^[\s;|&<>]/.test(rest)) break;
    else {
      parts.push(rest[0] ?? '');
      at += 1;
    }
  }
  return { text: parts.join(''), length: Math.max(at, 1), inner };
}

function readSubstitution(text: string): string {
  let depth = 0;
  for (let at = 1; at < text.length; at += 1) {
    if (text[at] === '(') depth += 1;
    if (text[at] === ')') depth -= 1;
    if (depth === 0) return text.slice(0, at + 1);
  }
  throw new Error(`a substitution has no end: ${text.slice(0, 60)}`);
}
