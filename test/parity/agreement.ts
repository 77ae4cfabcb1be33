// SPDX-License-Identifier: Apache-2.0
// Evaluates many inputs with the model and with the reference program, and fails with the smallest input on
// which they differ.

import { isDeepStrictEqual } from 'node:util';
import * as fc from 'fast-check';
import { afterAll, beforeAll, test } from 'vitest';
import type { Parsed } from '../../src/model/parsed.ts';
import {
  ReferenceProcess,
  type ReferenceRequest,
  type ReferenceResponse,
} from './reference-process.ts';

const seed = Number(process.env['PARITY_SEED']);
const allCases = Number(process.env['PARITY_CASES']);

export interface Agreement<T> {
  /** The share of all cases that this test gets. */
  readonly share: number;
  readonly inputs: fc.Arbitrary<T>;
  /** Hand-picked inputs, evaluated first. */
  readonly edgeCases: readonly T[];
  readonly request: (input: T) => ReferenceRequest;
  /** The model's result, in the form of the reference program's response. */
  readonly ours: (input: T) => ReferenceResponse;
}

export const REFUSED: ReferenceResponse = { refused: true };

/** Converts a parse result to the form of the reference program's response. */
export function toResponse<T>(
  parsed: Parsed<T>,
  describe: (value: T) => ReferenceResponse,
): ReferenceResponse {
  return parsed.ok ? describe(parsed.value) : REFUSED;
}

/** Defines one test. Call it at the top level of a test file. */
export function testAgreement<T>(name: string, agreement: Agreement<T>): void {
  let reference: ReferenceProcess;
  let refusals = 0;
  beforeAll(() => {
    reference = new ReferenceProcess(process.env['PARITY_REFERENCE'] ?? '');
  });
  afterAll(async () => {
    await reference[Symbol.asyncDispose]();
  });

  test(name, async () => {
    const property = fc.asyncProperty(agreement.inputs, async (input) => {
      const answer = await reference.request(agreement.request(input));
      const theirs = 'refused' in answer ? REFUSED : answer;
      if (theirs === REFUSED) refusals += 1;
      const ours = agreement.ours(input);
      if (isDeepStrictEqual(ours, theirs)) return;
      throw new Error(
        `on ${formatJson(input)}\n  the model returns ${formatJson(ours)}\n  Kubernetes returns ${formatJson(theirs)}`,
      );
    });
    const numRuns = Math.round(allCases * agreement.share) + agreement.edgeCases.length;
    const examples = agreement.edgeCases.map((input): [T] => [input]);
    await fc.assert(property, { seed, numRuns, examples });
    console.log(`parity: ${name}: ${numRuns} cases agree, ${refusals} of them refused by both`);
  });
}

function formatJson(value: unknown): string {
  return JSON.stringify(value);
}
