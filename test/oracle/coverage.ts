// SPDX-License-Identifier: Apache-2.0
// Measures what a run covers: how often each feature alone decides a result, how often each plugin alone
// rejects a node, and how many pods fit.

import type { Rejections } from './compare.ts';
import { FEATURES } from './features.ts';

const MIN_SHARE = 0.01;
const MIN_FIT_SHARE = 0.3;
const MAX_FIT_SHARE = 0.7;
/** With fewer samples a share is printed but not enforced. */
const MIN_SAMPLES = 250;

export function haveSameFits(one: Rejections, other: Rejections): boolean {
  return one.every((nodes, p) =>
    nodes.every((rejecting, n) => (rejecting.length === 0) === (other[p]?.[n]?.length === 0)),
  );
}

export class Coverage {
  #cases = 0;
  #results = 0;
  #fits = 0;
  #soleRejections = new Map<string, number>();
  #sampled = new Map<string, number>();
  #decisive = new Map<string, number>();

  addCase(rejections: Rejections): void {
    this.#cases += 1;
    const alone = new Set<string>();
    for (const rejecting of rejections.flat()) {
      this.#results += 1;
      if (rejecting.length === 0) this.#fits += 1;
      if (rejecting.length === 1) for (const plugin of rejecting) alone.add(plugin);
    }
    for (const plugin of alone) count(this.#soleRejections, plugin);
  }

  addSample(feature: string, isDecisive: boolean): void {
    count(this.#sampled, feature);
    if (isDecisive) count(this.#decisive, feature);
  }

  get fitShare(): number {
    return this.#fits / this.#results;
  }

  /** What a run of this size should have covered but did not. */
  findGaps(): string[] {
    const found: string[] = [];
    if (
      this.#cases >= MIN_SAMPLES &&
      (this.fitShare < MIN_FIT_SHARE || this.fitShare > MAX_FIT_SHARE)
    )
      found.push(`${percent(this.fitShare)} of the results are fits, outside 30–70 %`);
    for (const feature of Object.keys(FEATURES)) {
      const sampled = this.#sampled.get(feature) ?? 0;
      const share = (this.#decisive.get(feature) ?? 0) / sampled;
      if (sampled >= MIN_SAMPLES && share < MIN_SHARE)
        found.push(`'${feature}' decided only ${percent(share)} of ${sampled} sampled cases`);
    }
    return found;
  }

  report(): string[] {
    const shares = Object.keys(FEATURES).map((feature) => {
      const sampled = this.#sampled.get(feature) ?? 0;
      const decisive = this.#decisive.get(feature) ?? 0;
      return `  ${percent(decisive / Math.max(1, sampled)).padStart(6)}  ${feature} (${decisive} of ${sampled} sampled)`;
    });
    const alone = [...this.#soleRejections]
      .sort(([, one], [, other]) => other - one)
      .map(([plugin, cases]) => `  ${percent(cases / this.#cases).padStart(6)}  ${plugin}`);
    return [
      'share of cases in which a feature alone decides the result:',
      ...shares,
      'share of cases in which one plugin alone rejects a node:',
      ...alone,
      `${percent(this.fitShare)} of ${this.#results} results (pod × node) are fits`,
    ];
  }
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
