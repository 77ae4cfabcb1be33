// SPDX-License-Identifier: Apache-2.0
// Usage: npm run bench -- NAME [--json] [--quick]
//   --json  prints only the figures, as JSON, on stdout (npm adds its header there, unless: npm run --silent)
//   --quick  a small run that checks that the benchmark works

import { parseArgs } from 'node:util';
import type { Benchmark } from './benchmark.ts';

const BENCHMARKS: Readonly<Record<string, () => Promise<Benchmark>>> = {
  scheduling: async () => (await import('./scheduling/index.ts')).schedulingBenchmark,
  watch: async () => (await import('./watch/index.ts')).watchBenchmark,
  grpc: async () => (await import('./grpc/index.ts')).grpcBenchmark,
  loop: async () => (await import('./loop/index.ts')).loopBenchmark,
  standalone: async () => (await import('./standalone/index.ts')).standaloneBenchmark,
  store: async () => (await import('./store/index.ts')).storeBenchmark,
  fleet: async () => (await import('./fleet/index.ts')).fleetBenchmark,
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
  },
});

function say(text: string): void {
  process.stderr.write(`bench: ${text}\n`);
}

const [name = ''] = positionals;
const load = BENCHMARKS[name];
if (load === undefined) {
  say(`unknown benchmark '${name}'; available: ${Object.keys(BENCHMARKS).join(', ')}`);
  process.exitCode = 1;
} else {
  try {
    const benchmark = await load();
    const { figures, table } = await benchmark({ quick: values.quick, say });
    console.log(values.json ? JSON.stringify(figures, null, 2) : table.join('\n'));
  } catch (error) {
    say(error instanceof Error ? error.message : String(error));
    process.exitCode = 1;
  }
}
