// SPDX-License-Identifier: Apache-2.0
// A checker of Stryker: mutants that do not compile are not tested and do not count, because the compiler detects them.
// Each mutant is a copy of its file beside it, and one program checks all copies: much faster than a program each.
import { join } from 'node:path';
import ts from 'typescript';

interface Position {
  readonly line: number;
  readonly column: number;
}

/** What is used of Stryker's mutant; lines and columns start at 0. */
export interface MutantToCheck {
  readonly id: string;
  readonly fileName: string;
  readonly location: { readonly start: Position; readonly end: Position };
  readonly replacement: string;
}

type CheckResult =
  | { readonly status: 'passed' }
  | { readonly status: 'compileError'; readonly reason: string };

export class TypeChecker {
  init(): Promise<void> {
    return Promise.resolve();
  }

  group(mutants: readonly MutantToCheck[]): Promise<readonly (readonly string[])[]> {
    return Promise.resolve([mutants.map(({ id }) => id)]);
  }

  check(mutants: readonly MutantToCheck[]): Promise<Readonly<Record<string, CheckResult>>> {
    const copies = new Map(mutants.map((mutant) => [copyName(mutant), mutatedText(mutant)]));
    const program = createProgram(copies);
    const results = mutants.map((mutant) => [mutant.id, checkCopy(program, copyName(mutant))]);
    return Promise.resolve(Object.fromEntries(results));
  }
}

function checkCopy(program: ts.Program, name: string): CheckResult {
  const file = program.getSourceFile(name);
  const [error] = [
    ...program.getSyntacticDiagnostics(file),
    ...program.getSemanticDiagnostics(file),
  ];
  if (error === undefined) return { status: 'passed' };
  const reason = ts.flattenDiagnosticMessageText(error.messageText, ' ');
  return { status: 'compileError', reason };
}

function createProgram(copies: ReadonlyMap<string, string>): ts.Program {
  const root = process.cwd();
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), (path) =>
    ts.sys.readFile(path),
  );
  // A mutant may leave an import or a variable unused, or code unreachable; that is no defect of it.
  const options: ts.CompilerOptions = {
    ...ts.convertCompilerOptionsFromJson(config.compilerOptions, root).options,
    noUnusedLocals: false,
    noUnusedParameters: false,
    allowUnreachableCode: true,
  };
  const host = ts.createCompilerHost(options);
  host.fileExists = (name) => copies.has(name) || ts.sys.fileExists(name);
  host.readFile = (name) => copies.get(name) ?? ts.sys.readFile(name);
  return ts.createProgram({ rootNames: [...copies.keys()], options, host });
}

function copyName({ fileName, id }: MutantToCheck): string {
  return fileName.replace(/\.ts$/, `.mutant-${id}.ts`);
}

function mutatedText({ fileName, location, replacement }: MutantToCheck): string {
  const text = ts.sys.readFile(fileName) ?? '';
  const from = offsetOf(text, location.start);
  const to = offsetOf(text, location.end);
  return text.slice(0, from) + withTypes(text.slice(from, to), replacement) + text.slice(to);
}

/**
 * A condition that is always false must compile in the branch that is never taken: it keeps its types there. The branch
 * that is always taken gets no types from the condition.
 */
function withTypes(original: string, replacement: string): string {
  if (replacement === 'false') return `((${original}) && (false as boolean))`;
  if (replacement === 'true') return `((${original}) || (true as boolean))`;
  return replacement;
}

function offsetOf(text: string, { line, column }: Position): number {
  let at = 0;
  for (let left = line; left > 0; left -= 1) at = text.indexOf('\n', at) + 1;
  return at + column;
}

export const strykerPlugins = [
  { kind: 'Checker', name: 'types', injectableClass: TypeChecker },
] as const;
