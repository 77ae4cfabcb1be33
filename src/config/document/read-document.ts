// SPDX-License-Identifier: Apache-2.0
// Parses YAML text to a plain tree, with the position of every key and value. Anchors, aliases and merge
// keys are resolved within limits, so that a small file cannot expand to a large tree.
import { type ErrorCode, LineCounter, parseDocument } from 'yaml';
import type { ParsedDocument, SyntaxProblem } from './parsed-document.ts';
import { syntaxMessage } from './syntax-message.ts';
import { ConfigTreeBuilder } from './tree-builder.ts';

const MAX_SYNTAX_PROBLEMS = 20;
/** Far above any real config. Each key costs a position, checks and perhaps a message. */
const MAX_FILE_LENGTH = 250_000;

/** Errors after which the document can still be used. */
const RECOVERABLE_CODES: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['TAG_RESOLVE_FAILED']);
const BYTE_ORDER_MARK = /^\uFEFF/;

export function readDocument(source: string): ParsedDocument {
  const text = source.replace(BYTE_ORDER_MARK, '');
  const undecoded = text.search(/[\0\uFFFD]/);
  if (undecoded >= 0) {
    const message = 'the file is not UTF-8 text; save it as UTF-8';
    return failedDocument([{ ...positionIn(text, undecoded), message }]);
  }
  if (text.length > MAX_FILE_LENGTH) {
    return failedDocument([
      { line: 1, col: 1, message: 'the file is larger than 250 kB; this is not a config file' },
    ]);
  }
  try {
    return parseText(text);
  } catch {
    // The library overflows the stack on extremely deep nesting.
    return failedDocument([{ line: 1, col: 1, message: syntaxMessage('RESOURCE_EXHAUSTION') }]);
  }
}

function parseText(text: string): ParsedDocument {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, {
    version: '1.2',
    schema: 'core',
    merge: false,
    prettyErrors: false,
    uniqueKeys: false,
    // 'silent' would also suppress the error about a second document.
    logLevel: 'error',
    lineCounter,
  });
  const found = [...document.errors, ...document.warnings].slice(0, MAX_SYNTAX_PROBLEMS);
  const syntax = found.map(({ code, pos }) => ({
    ...linePosition(lineCounter, pos[0]),
    message: syntaxMessage(code),
  }));
  if (found.some(({ code }) => !RECOVERABLE_CODES.has(code))) return failedDocument(syntax);
  const built = new ConfigTreeBuilder(document, (offset) =>
    linePosition(lineCounter, offset),
  ).build();
  return { ...built, problems: [...syntax, ...built.problems] };
}

function positionIn(text: string, offset: number): { line: number; col: number } {
  const before = text.slice(0, offset).split('\n');
  return { line: before.length, col: (before.at(-1) ?? '').length + 1 };
}

function linePosition(lineCounter: LineCounter, offset: number): { line: number; col: number } {
  const { line, col } = lineCounter.linePos(offset);
  return { line: Math.max(line, 1), col: Math.max(col, 1) };
}

function failedDocument(problems: readonly SyntaxProblem[]): ParsedDocument {
  return { tree: undefined, locations: new Map(), problems };
}
