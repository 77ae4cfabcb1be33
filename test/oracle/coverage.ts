// SPDX-License-Identifier: Apache-2.0
// What the cases of a run have put to the test: how often each feature decided a verdict, how often each
// plugin alone stood in the way, and how many answers were yes.

import { FEATURES } from './features.ts';
import type { Rejections } from './oracle.ts';

const LEAST_SHARE = 0.01;
const LEAST_YES = 0.3;
const MOST_YES = 0.7;
/** Below this many samples a share says little, and is printed but not enforced. */
const ENOUGH_SAMPLES = 250;

export function sameVerdicts(one: Rejections, other: Rejections): boolean {
  return one.every((nodes, p) =>
    nodes.every((refusing, n) => (refusing.length === 0) === (other[p]?.[n]?.length === 0)),
  );
}

export class Coverage {
  #cases = 0;
  #answers = 0;
  #yes = 0;
  #alone = new Map<string, number>();
  #sampled = new Map<string, number>();
  #decisive = new Map<string, number>();

  addCase(rejections: Rejections): void {
    this.#cases += 1;
    const alone = new Set<string>();
    for (const refusing of rejections.flat()) {
      this.#answers += 1;
      if (refusing.length === 0) this.#yes += 1;
      if (refusing.length === 1) for (const plugin of refusing) alone.add(plugin);
    }
    for (const plugin of alone) count(this.#alone, plugin);
  }

  addSample(feature: string, isDecisive: boolean): void {
    count(this.#sampled, feature);
    if (isDecisive) count(this.#decisive, feature);
  }

  get yesShare(): number {
    return this.#yes / this.#answers;
  }

  /** Sentences about what a run of this size should have covered and did not. */
  shortcomings(): string[] {
    const found: string[] = [];
    if (this.#cases >= ENOUGH_SAMPLES && (this.yesShare < LEAST_YES || this.yesShare > MOST_YES))
      found.push(`${percent(this.yesShare)} of the answers are yes, outside 30–70 %`);
    for (const feature of Object.keys(FEATURES)) {
      const sampled = this.#sampled.get(feature) ?? 0;
      const share = (this.#decisive.get(feature) ?? 0) / sampled;
      if (sampled >= ENOUGH_SAMPLES && share < LEAST_SHARE)
        found.push(`'${feature}' decided only ${percent(share)} of ${sampled} sampled cases`);
    }
    return found;
  }

  lines(): string[] {
    const shares = Object.keys(FEATURES).map((feature) => {
      const sampled = this.#sampled.get(feature) ?? 0;
      const decisive = this.#decisive.get(feature) ?? 0;
      return `  ${percent(decisive / Math.max(1, sampled)).padStart(6)}  ${feature} (${decisive} of ${sampled} sampled)`;
    });
    const alone = [...this.#alone]
      .sort(([, one], [, other]) => other - one)
      .map(([plugin, cases]) => `  ${percent(cases / this.#cases).padStart(6)}  ${plugin}`);
    return [
      'a feature alone decides a verdict, in this share of cases:',
      ...shares,
      'a node is refused by one plugin alone, in this share of cases:',
      ...alone,
      `${percent(this.yesShare)} of ${this.#answers} answers (pod × node) are yes`,
    ];
  }
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
