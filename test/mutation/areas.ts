// SPDX-License-Identifier: Apache-2.0
// What is mutated, and the tests that must detect it. Slow tests are left out: thousands of random cases or crash points
// for each mutant would take days, and examples detect what they detect.

export interface Area {
  /** Patterns of files; tests, test helpers and re-exports are never mutated. */
  readonly mutate: readonly string[];
  readonly tests: readonly string[];
  readonly slowTests: readonly string[];
  /** Mutators of Stryker that are not used here. */
  readonly excludedMutations?: readonly string[];
  /** Whether mutants that do not compile are left out, see type-checker.ts. */
  readonly checksTypes?: boolean;
}

export const AREAS: Readonly<Record<string, Area>> = {
  scheduling: {
    mutate: ['src/scheduling/**/*.ts'],
    tests: ['src/scheduling/**/*.test.ts'],
    slowTests: ['src/scheduling/properties.test.ts'],
  },
  placement: {
    mutate: ['src/placement/**/*.ts'],
    tests: ['src/placement/**/*.test.ts'],
    slowTests: ['src/placement/**/*.property.test.ts'],
  },
  /** Which VM is ours, what may be sent again, and where. */
  proxmox: {
    mutate: [
      'src/model/marker.ts',
      'src/proxmox/{api-client,endpoints,retry,session,tasks,vm-hosts,vms}.ts',
    ],
    tests: ['src/model/marker.test.ts', 'src/proxmox/*.test.ts'],
    slowTests: [],
  },
  // Last, because it takes longest: a sample gets the time that the others left.
  fleet: {
    mutate: ['src/fleet/**/*.ts'],
    tests: ['src/fleet/**/*.test.ts', 'test/bootstrap/ca-hash.test.ts'],
    slowTests: [
      'src/fleet/capacity/headroom.property.test.ts',
      'src/fleet/recovery/{random-faults,crash,crash-joining}.test.ts',
    ],
    // Mostly the texts of log lines, journal entries and errors. The others are literal types, which the compiler checks.
    excludedMutations: ['StringLiteral'],
    checksTypes: true,
  },
};

export const NEVER_MUTATED: readonly string[] = [
  'src/**/*.test.ts',
  'src/**/testing/**',
  'src/**/index.ts',
];
