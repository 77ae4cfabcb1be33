// SPDX-License-Identifier: Apache-2.0

/** Whole numbers with + - * / %, comparisons and brackets; an unknown name counts as zero. */
export function evaluateArithmetic(text: string, variable: (name: string) => string): number {
  const tokens = text.match(/\d+|[A-Za-z_]\w*|[<>=!]=|[-+*/%()<>]/g) ?? [];
  return new Arithmetic(tokens, variable).level(0);
}

const LEVELS: readonly (readonly string[])[] = [
  ['==', '!=', '<', '>', '<=', '>='],
  ['+', '-'],
  ['*', '/', '%'],
];

const APPLY: Readonly<Record<string, (left: number, right: number) => number>> = {
  '==': (left, right) => Number(left === right),
  '!=': (left, right) => Number(left !== right),
  '<': (left, right) => Number(left < right),
  '>': (left, right) => Number(left > right),
  '<=': (left, right) => Number(left <= right),
  '>=': (left, right) => Number(left >= right),
  '+': (left, right) => left + right,
  '-': (left, right) => left - right,
  '*': (left, right) => left * right,
  '/': (left, right) => (right === 0 ? 0 : Math.trunc(left / right)),
  '%': (left, right) => (right === 0 ? 0 : left % right),
};

class Arithmetic {
  readonly #tokens: string[];
  readonly #variable: (name: string) => string;

  constructor(tokens: readonly string[], variable: (name: string) => string) {
    this.#tokens = [...tokens];
    this.#variable = variable;
  }

  level(depth: number): number {
    const operators = LEVELS[depth];
    if (operators === undefined) return this.#operand();
    let total = this.level(depth + 1);
    while (operators.includes(this.#tokens[0] ?? '')) {
      const operator = this.#tokens.shift() ?? '';
      total = APPLY[operator]?.(total, this.level(depth + 1)) ?? total;
    }
    return total;
  }

  #operand(): number {
    const token = this.#tokens.shift() ?? '0';
    if (token === '-') return -this.#operand();
    if (token === '(') {
      const value = this.level(0);
      this.#tokens.shift();
      return value;
    }
    return Number(/^\d/.test(token) ? token : this.#variable(token)) || 0;
  }
}
