// SPDX-License-Identifier: Apache-2.0
// The words of the shell's language, as the parser leaves them for the interpreter.

export type WordPart =
  | { readonly kind: 'text'; readonly text: string; readonly quoted: boolean }
  | {
      readonly kind: 'variable';
      readonly name: string;
      readonly quoted: boolean;
      /** `:-`, `-`, `:=`, `:+`, `+`, `:?`, `%`, `%%`, `#`, `##`, or `length` for `${#x}`. */
      readonly operator?: string;
      readonly operand?: Word;
    }
  | { readonly kind: 'command'; readonly script: string; readonly quoted: boolean }
  | { readonly kind: 'arithmetic'; readonly expression: string };

export type Word = readonly WordPart[];

export interface Redirect {
  readonly fd: number;
  readonly operator: '>' | '>>' | '<' | '>&' | '&>' | 'here';
  readonly target: Word;
}

export interface Simple {
  readonly kind: 'simple';
  readonly assignments: readonly { readonly name: string; readonly value: Word }[];
  readonly words: readonly Word[];
  readonly redirects: readonly Redirect[];
}

export interface Compound {
  readonly kind: 'compound';
  readonly body: Loop | Branches | Cases | Group;
  readonly redirects: readonly Redirect[];
}

export interface Loop {
  readonly kind: 'for' | 'while' | 'until';
  readonly variable: string;
  readonly words: readonly Word[];
  readonly test: Node;
  readonly body: Node;
}

export interface Branches {
  readonly kind: 'if';
  readonly branches: readonly { readonly test: Node; readonly body: Node }[];
  readonly otherwise: Node | undefined;
}

export interface Cases {
  readonly kind: 'case';
  readonly subject: Word;
  readonly clauses: readonly { readonly patterns: readonly Word[]; readonly body: Node }[];
}

export interface Group {
  readonly kind: 'group';
  readonly subshell: boolean;
  readonly body: Node;
}

export type Node =
  | Simple
  | Compound
  | { readonly kind: 'function'; readonly name: string; readonly body: Node }
  | { readonly kind: 'pipeline'; readonly negated: boolean; readonly commands: readonly Node[] }
  | {
      readonly kind: 'chain';
      readonly first: Node;
      readonly rest: readonly { readonly operator: '&&' | '||'; readonly node: Node }[];
    }
  | { readonly kind: 'list'; readonly items: readonly Node[] };

export type Token =
  | {
      readonly kind: 'word';
      readonly word: Word /** Its text when nothing in it is quoted or expanded. */;
      readonly bare: string | undefined;
    }
  | { readonly kind: 'operator'; readonly text: string }
  | { readonly kind: 'redirect'; readonly redirect: Redirect };

export class ShellSyntaxError extends Error {
  override readonly name = 'ShellSyntaxError';
}
