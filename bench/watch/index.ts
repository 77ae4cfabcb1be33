// SPDX-License-Identifier: Apache-2.0
// The watch cache under load: a list of 1,000 nodes and 30,000 pods, then 50,000 updates.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type BenchmarkOptions, type Outcome, readNodeOptionsOfImage } from '../benchmark.ts';

const HERE = import.meta.dirname;
const FULL = { nodes: 1_000, pods: 30_000, updates: 50_000 };
const QUICK = { nodes: 20, pods: 300, updates: 500 };

interface Figures {
  readonly heapMiB: number;
  readonly rssMiB: number;
  readonly peakRssMiB: number;
  readonly seconds: number;
  readonly listSeconds: number;
  readonly updateSeconds: number;
  readonly cpuSeconds: number;
  readonly errors: readonly string[];
}

export async function watchBenchmark({ quick, say }: BenchmarkOptions): Promise<Outcome> {
  const load = quick ? QUICK : FULL;
  say(`${load.nodes} nodes, ${load.pods} pods, ${load.updates} updates`);
  const { errors, ...measured } = await withServer(load, (url) => measure(url, load.pods));
  if (errors.length > 0) throw new Error(`the watch reported errors: ${errors.join('; ')}`);
  const figures = { ...load, ...measured };
  return {
    figures,
    table: Object.entries(figures).map(([name, value]) => `${name.padEnd(14)} ${value}`),
  };
}

async function withServer<T>(load: typeof FULL, work: (url: string) => Promise<T>): Promise<T> {
  const args = [join(HERE, 'server.ts'), load.nodes, load.pods, load.updates].map(String);
  const server = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  try {
    const [port] = (await once(server.stdout, 'data')) as [Buffer];
    return await work(`http://127.0.0.1:${port.toString('utf8').trim()}`);
  } finally {
    server.stdin.end();
    await once(server, 'exit');
  }
}

async function measure(server: string, pods: number): Promise<Figures> {
  const folder = mkdtempSync(join(tmpdir(), 'pvescaler-bench-'));
  try {
    const path = join(folder, 'kubeconfig');
    writeFileSync(path, renderKubeconfig(server));
    const args = ['--expose-gc', join(HERE, 'client.ts'), path, String(pods)];
    const env = { ...process.env, NODE_OPTIONS: readNodeOptionsOfImage() };
    const { stdout } = await promisify(execFile)(process.execPath, args, { env });
    return JSON.parse(stdout) as Figures;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function renderKubeconfig(server: string): string {
  return JSON.stringify({
    clusters: [{ name: 'b', cluster: { server, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'b', user: { token: 'of-the-benchmark' } }],
    contexts: [{ name: 'b', context: { cluster: 'b', user: 'b' } }],
    'current-context': 'b',
  });
}
