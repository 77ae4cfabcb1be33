// SPDX-License-Identifier: Apache-2.0
// The Cluster Autoscaler where it runs: its version and its flags.
import type { Config } from '../config/index.ts';
import { durationToMs, parseDuration } from '../model/duration.ts';
import type { ClusterInspector, RunningContainer } from '../ports/inspection.ts';
import { type Check, failure, type Outcome, ok, warning } from './check.ts';
import { KUBERNETES_GROUP } from './kubernetes.ts';

const IMAGE = 'cluster-autoscaler';
const OLDEST_MINOR = 25;
const DEFAULT_PROVISION_TIME = '15m';
const GUIDE = 'docs/guides/cluster-autoscaler.md';

export function clusterAutoscalerCheck(inspector: ClusterInspector, config: Config): Check {
  return {
    name: 'cluster-autoscaler',
    group: KUBERNETES_GROUP,
    run: async (signal) => {
      const containers = await inspector.containers(IMAGE, { signal });
      const autoscaler = containers.find(({ image }) => /\/?cluster-autoscaler[^/]*$/.test(image));
      if (config.mode === 'standalone') return judgeBeside(autoscaler);
      if (autoscaler === undefined) {
        return warning(
          'no Cluster Autoscaler runs in the cluster, and mode is externalgrpc',
          `Install it (${GUIDE}), or set mode: standalone.`,
        );
      }
      return judge(autoscaler, config);
    },
  };
}

/** Two autoscalers would scale for the same pods. */
function judgeBeside(autoscaler: RunningContainer | undefined): Outcome {
  if (autoscaler === undefined) return ok('none runs, as mode standalone wants it');
  const { namespace, pod } = autoscaler;
  return warning(
    `${namespace}/${pod} runs beside mode standalone: both add machines for the same pods`,
    'Remove one of them, or let the Cluster Autoscaler scale other node groups only.',
  );
}

type Flags = ReadonlyMap<string, string>;

function judge({ namespace, pod, image, command }: RunningContainer, config: Config): Outcome {
  const flags = readFlags(command);
  const [, major = '', minor = ''] = /:v?(\d+)\.(\d+)/.exec(image) ?? [];
  const where = `${namespace}/${pod}`;
  if (major === '1' && Number(minor) < OLDEST_MINOR) {
    return failure(`${where} is ${image}, older than 1.${OLDEST_MINOR}`, 'Upgrade it.');
  }
  const wrong = missingFlag(flags);
  if (wrong !== undefined) return failure(`${where} ${wrong}`, `Set the flag; see ${GUIDE}.`);
  const problems = flagProblems(flags, config);
  return problems.length === 0
    ? ok(`${where}, ${image.replace(/^.*\//, '')}`)
    : warning(`${where} ${problems.join('; ')}`, `Set the flags; ${GUIDE} says why.`);
}

/** `--name=value`, `--name value`, `-name=value`; without a value it is `true`. */
function readFlags(command: readonly string[]): Flags {
  const flags = new Map<string, string>();
  for (const [at, word] of command.entries()) {
    const [, name, value] = /^--?([\w-]+)(?:=(.*))?$/s.exec(word) ?? [];
    if (name === undefined) continue;
    const next = command[at + 1];
    const isSeparate = value === undefined && next !== undefined && !next.startsWith('-');
    flags.set(name, value ?? (isSeparate ? next : 'true'));
  }
  return flags;
}

function missingFlag(flags: Flags): string | undefined {
  const provider = flags.get('cloud-provider');
  if (provider !== 'externalgrpc') {
    return `has --cloud-provider=${provider ?? ''} and not externalgrpc`;
  }
  return flags.get('cloud-config') === undefined ? 'has no --cloud-config' : undefined;
}

function flagProblems(flags: Flags, { pools }: Config): readonly string[] {
  const provisionTime = flags.get('max-node-provision-time') ?? DEFAULT_PROVISION_TIME;
  const provisionMs = parseMs(provisionTime);
  const slowest = Math.max(0, ...pools.map(({ provisionTimeoutMs }) => provisionTimeoutMs));
  const keepsMinimum = flags.get('enforce-node-group-min-size') === 'true';
  return [
    ...(provisionMs < slowest
      ? [
          `has --max-node-provision-time=${provisionTime}, shorter than the provisionTimeout of a pool (${slowest / 60_000}m)`,
        ]
      : []),
    ...(flags.has('node-info-cache-expire-time')
      ? []
      : ['has no --node-info-cache-expire-time: a resized pool keeps its old size']),
    ...(pools.some(({ minKeptBy }) => minKeptBy === 'cluster-autoscaler') && !keepsMinimum
      ? ['has no --enforce-node-group-min-size=true, but is to keep the minimum of a pool']
      : []),
  ];
}

function parseMs(text: string): number {
  const parsed = parseDuration(text);
  return parsed.ok ? durationToMs(parsed.value) : Number.POSITIVE_INFINITY;
}
