// SPDX-License-Identifier: Apache-2.0

/** Evaluates integers with + - * / %, comparisons and parentheses. An unset variable is 0. */
export function evaluateArithmetic(text: string, variable: (name: string) => string): number {
  const tokens = text.match(/\d+|[A-Za-z_]\w*|[<>=!]=|[-+*/%()<>]/g) ?? [];
  return new ArithmeticEvaluator(tokens, variable).evaluate(0);
}

const OPERATORS_BY_PRECEDENCE: readonly (readonly string[])[] = [
  ['==', '!=', '<', '>', '<=', '>='],
  ['+', '-'],
  ['*', '/', '%'],
];

const OPERATIONS: Readonly<Record<string, (left: number, right: number) => number>> = {
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

class ArithmeticEvaluator {
  readonly #tokens: string[];
  readonly #variable: (name: string) => string;

  constructor(tokens: readonly string[], variable: (name: string) => string) {
    this.#tokens = [...tokens];
    this.#variable = variable;
  }

  /** Evaluates operators from this precedence level upwards. */
  evaluate(precedence: number): number {
    const operators = OPERATORS_BY_PRECEDENCE[precedence];
    if (operators === undefined) return this.#evaluateOperand();
    let total = this.evaluate(precedence + 1);
    while (operators.includes(this.#tokens[0] ?? '')) {
      const operator = this.#tokens.shift() ?? '';
      total = OPERATIONS[operator]?.(total, this.evaluate(precedence + 1)) ?? total;
    }
    return total;
  }

  #evaluateOperand(): number {
    const token = this.#tokens.shift() ?? '0';
    if (token === '-') return -this.#evaluateOperand();
    if (token === '(') {
      const value = this.evaluate(0);
      this.#tokens.shift();
      return value;
    }
    return Number(/^\d/.test(token) ? token : this.#variable(token)) || 0;
  }
}
