// SPDX-License-Identifier: Apache-2.0
// Releases of the Cluster Autoscaler as processes, connected to `serve` by mutual TLS.
import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { TestContext } from 'vitest';
import { freePorts } from '../../controlplane/free-ports.ts';
import { type ControlPlane, Program, waitUntil } from '../../controlplane/index.ts';
import type { ProviderSite } from './provider-site.ts';

/** Paths from CLUSTER_AUTOSCALER, separated by commas. */
export const BINARIES: readonly string[] = (process.env['CLUSTER_AUTOSCALER'] ?? '')
  .split(',')
  .map((path) => path.trim())
  .filter((path) => path !== '');

export const HOW_TO_RUN =
  'set CLUSTER_AUTOSCALER=path[,path…] to binaries built with `go build -tags externalgrpc`';

/** The defaults are minutes. */
const FAST = {
  'scan-interval': '1s',
  'scale-down-delay-after-add': '2s',
  'scale-down-delay-after-failure': '2s',
  'scale-down-unneeded-time': '5s',
  'unremovable-node-recheck-timeout': '3s',
  'node-delete-delay-after-taint': '1s',
  'max-node-provision-time': '3m',
} as const;

export interface RealAutoscalerOptions {
  readonly path: string;
  readonly plane: ControlPlane;
  readonly provider: ProviderSite;
  readonly flags?: Readonly<Record<string, string>>;
  /** Folder of its certificates, if not the provider's. */
  readonly certs?: string;
  readonly onTestFinished: TestContext['onTestFinished'];
}

export interface RealAutoscaler {
  readonly program: Program;
  /** Version that it logs at its start. */
  version(): Promise<string>;
  /** Sum of a counter or gauge over its labels. */
  metric(name: string): Promise<number>;
  /** Resolves when a line of its log matches. */
  waitForLog(pattern: RegExp): Promise<void>;
}

const LOG_TAIL_LINES = 60;

export async function startAutoscaler(options: RealAutoscalerOptions): Promise<RealAutoscaler> {
  const { path, plane, provider, flags = {}, certs = provider.certs, onTestFinished } = options;
  const [port = 0] = await freePorts(1);
  const cloudConfig = join(plane.folder, `cloud-config-${port}.yaml`);
  writeFileSync(
    cloudConfig,
    `address: "localhost:${provider.port}"
cert: ${certs}/client.crt
key: ${certs}/client.key
cacert: ${certs}/ca.crt
grpc_timeout: 15s
`,
  );
  const all = {
    'cloud-provider': 'externalgrpc',
    'cloud-config': cloudConfig,
    kubeconfig: plane.kubeconfig,
    'leader-elect': 'false',
    address: `127.0.0.1:${port}`,
    v: '4',
    ...FAST,
    ...flags,
  };
  const program = new Program({
    name: basename(path),
    path,
    args: Object.entries(all).map(([name, value]) => `--${name}=${value}`),
    logFile: join(plane.folder, `cluster-autoscaler-${port}.log`),
  });
  onTestFinished(async ({ task }) => {
    await program.kill();
    if (task.result?.state !== 'fail') return;
    const tail = program.log().trimEnd().split('\n').slice(-LOG_TAIL_LINES).join('\n');
    process.stderr.write(`--- ${basename(path)}\n${tail}\n`);
  });
  const waitForLine = (pattern: RegExp) =>
    waitUntil(`a line that matches ${pattern} in the log of ${basename(path)}`, () => {
      program.assertRunning();
      return pattern.exec(program.log()) ?? undefined;
    });
  return {
    program,
    version: async () => (await waitForLine(/Cluster Autoscaler (\d+\.\d+\.\d+)/))[1] ?? '',
    metric: (name) => readMetric(`http://127.0.0.1:${port}/metrics`, name),
    waitForLog: async (pattern) => void (await waitForLine(pattern)),
  };
}

async function readMetric(url: string, name: string): Promise<number> {
  const text = await (await fetch(url)).text();
  return text
    .split('\n')
    .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
    .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}
