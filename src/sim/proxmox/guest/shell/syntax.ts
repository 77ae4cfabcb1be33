// SPDX-License-Identifier: Apache-2.0
// The syntax tree of the shell, and its tokens.

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

export interface SimpleCommand {
  readonly kind: 'simple';
  readonly assignments: readonly { readonly name: string; readonly value: Word }[];
  readonly words: readonly Word[];
  readonly redirects: readonly Redirect[];
}

export interface CompoundCommand {
  readonly kind: 'compound';
  readonly body: Loop | IfStatement | CaseStatement | Group;
  readonly redirects: readonly Redirect[];
}

export interface Loop {
  readonly kind: 'for' | 'while' | 'until';
  readonly variable: string;
  readonly words: readonly Word[];
  readonly test: ShellNode;
  readonly body: ShellNode;
}

export interface IfStatement {
  readonly kind: 'if';
  readonly branches: readonly { readonly test: ShellNode; readonly body: ShellNode }[];
  readonly otherwise: ShellNode | undefined;
}

export interface CaseStatement {
  readonly kind: 'case';
  readonly subject: Word;
  readonly clauses: readonly { readonly patterns: readonly Word[]; readonly body: ShellNode }[];
}

export interface Group {
  readonly kind: 'group';
  readonly subshell: boolean;
  readonly body: ShellNode;
}

export type ShellNode =
  | SimpleCommand
  | CompoundCommand
  | { readonly kind: 'function'; readonly name: string; readonly body: ShellNode }
  | {
      readonly kind: 'pipeline';
      readonly negated: boolean;
      readonly commands: readonly ShellNode[];
    }
  | {
      readonly kind: 'chain';
      readonly first: ShellNode;
      readonly rest: readonly { readonly operator: '&&' | '||'; readonly node: ShellNode }[];
    }
  | { readonly kind: 'background'; readonly node: ShellNode }
  | { readonly kind: 'list'; readonly items: readonly ShellNode[] };

export type ShellToken =
  | {
      readonly kind: 'word';
      readonly word: Word;
      /** The text of a word without quotes and expansions. */
      readonly bare: string | undefined;
    }
  | { readonly kind: 'operator'; readonly text: string }
  | { readonly kind: 'redirect'; readonly redirect: Redirect };

export class ShellSyntaxError extends Error {
  override readonly name = 'ShellSyntaxError';
}
