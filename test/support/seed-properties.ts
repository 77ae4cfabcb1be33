// SPDX-License-Identifier: Apache-2.0
// With PROPERTY_SEED, as in CI, the properties of fast-check get the same cases in every run: a run then fails for what a
// commit changes, and not for what a new sample happens to contain. Without it the cases are new in every run.

interface SourcePlugin {
  readonly name: string;
  readonly enforce: 'pre';
  /** The source that runs in place of this one. */
  transform(code: string): string | undefined;
}

/** Reads the variable when a test file is loaded: Vitest keeps transformed files from one run to the next. */
const CONFIGURE = [
  `import { configureGlobal as configureProperties } from 'fast-check';`,
  `const { PROPERTY_SEED: propertySeed } = process.env;`,
  `if (propertySeed !== undefined) configureProperties({ seed: Number(propertySeed) });`,
].join(' ');

/** A plugin rather than a setup file, which would load fast-check for every test file. */
export function seedProperties(): SourcePlugin {
  return {
    name: 'seed-properties',
    enforce: 'pre',
    transform(code) {
      if (!code.includes("from 'fast-check'")) return undefined;
      // On the first line, which is a comment, so that the others keep their numbers.
      return `${CONFIGURE} ${code}`;
    },
  };
}
