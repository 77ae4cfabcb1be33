// SPDX-License-Identifier: Apache-2.0
// A reporter of Stryker that writes each tested mutant as one line, so that a run can be ended early and still counts.
import { appendFileSync } from 'node:fs';

export interface TestedMutant {
  readonly status: string;
  readonly fileName: string;
  readonly location: { readonly start: { readonly line: number; readonly column: number } };
  readonly mutatorName: string;
  readonly replacement?: string;
}

class LineReporter {
  onMutantTested({ status, fileName, location, mutatorName, replacement }: TestedMutant): void {
    const line = JSON.stringify({ status, fileName, location, mutatorName, replacement });
    appendFileSync(process.env['MUTATION_RESULTS'] ?? '', `${line}\n`);
  }
}

export const strykerPlugins = [
  { kind: 'Reporter', name: 'lines', injectableClass: LineReporter },
] as const;
