// SPDX-License-Identifier: Apache-2.0
// Asks the model and the judge the same question, many times over, and fails with the smallest input on which
// they differ.

import { isDeepStrictEqual } from 'node:util';
import * as fc from 'fast-check';
import { afterAll, beforeAll, test } from 'vitest';
import type { Parsed } from '../../src/model/parsed.ts';
import { type Answer, Judge, type Question } from './judge.ts';

const seed = Number(process.env['PARITY_SEED']);
const allCases = Number(process.env['PARITY_CASES']);

export interface Agreement<T> {
  /** Of all cases, the part that goes here. */
  readonly share: number;
  readonly inputs: fc.Arbitrary<T>;
  /** Hand-picked inputs, asked first. */
  readonly nasty: readonly T[];
  readonly question: (input: T) => Question;
  /** What the model says, in the form of the judge's answer. */
  readonly ours: (input: T) => Answer;
}

export const REFUSED: Answer = { refused: true };

/** The judge's form of what the model parsed. */
export function told<T>(parsed: Parsed<T>, describe: (value: T) => Answer): Answer {
  return parsed.ok ? describe(parsed.value) : REFUSED;
}

/** Defines one test; call it at the top of a suite file. */
export function agree<T>(name: string, agreement: Agreement<T>): void {
  let judge: Judge;
  let refusals = 0;
  beforeAll(() => {
    judge = new Judge(process.env['PARITY_JUDGE'] ?? '');
  });
  afterAll(async () => {
    await judge[Symbol.asyncDispose]();
  });

  test(name, async () => {
    const property = fc.asyncProperty(agreement.inputs, async (input) => {
      const answer = await judge.ask(agreement.question(input));
      const theirs = 'refused' in answer ? REFUSED : answer;
      if (theirs === REFUSED) refusals += 1;
      const ours = agreement.ours(input);
      if (isDeepStrictEqual(ours, theirs)) return;
      throw new Error(
        `on ${shown(input)}\n  the model says ${shown(ours)}\n  Kubernetes says ${shown(theirs)}`,
      );
    });
    const numRuns = Math.round(allCases * agreement.share) + agreement.nasty.length;
    const examples = agreement.nasty.map((input): [T] => [input]);
    await fc.assert(property, { seed, numRuns, examples });
    console.log(`parity: ${name}: ${numRuns} cases agree, ${refusals} of them refused by both`);
  });
}

function shown(value: unknown): string {
  return JSON.stringify(value);
}
