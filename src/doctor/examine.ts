// SPDX-License-Identifier: Apache-2.0
// Examines an installation: builds the checks of its config and runs them.
import type { Config } from '../config/index.ts';
import type { ClusterInspector } from '../ports/inspection.ts';
import { needsCluster } from '../setup/index.ts';
import { CHECK_NAMES, type Check, type CheckResult, skipped } from './check.ts';
import { clusterAutoscalerCheck } from './cluster-autoscaler.ts';
import { fileChecks, secretChecks } from './config-files.ts';
import type { DoctorContext } from './context.ts';
import { endpointChecks } from './endpoints.ts';
import { clockCheck, hostsChecks } from './hosts.ts';
import { addressChecks, vmIdCheck } from './ids-and-addresses.ts';
import { joinChecks } from './join.ts';
import {
  apiServerCheck,
  providerIdCheck,
  rightChecks,
  skippedWithoutCluster,
  stateCheck,
} from './kubernetes.ts';
import { networkChecks } from './networks.ts';
import { poolObjectsCheck } from './pool-objects.ts';
import { privilegeChecks, tokenCheck } from './privileges.ts';
import { RegionReader } from './region-reader.ts';
import { CHECK_DEADLINE_MS, type CheckProgress, runChecks } from './run-checks.ts';
import { checksumChecks, imageChecks, templateChecks } from './sources.ts';
import { seedStorageCheck, storageChecks } from './storages.ts';

interface ExamineOptions {
  /** `proxmox`: everything that needs no Kubernetes. */
  readonly scope: 'all' | 'proxmox';
  readonly signal: AbortSignal;
  readonly onProgress?: ((progress: CheckProgress) => void) | undefined;
}

type Source = readonly Check[] | Promise<readonly Check[]>;

interface Examination {
  readonly context: DoctorContext;
  readonly config: Config;
  readonly scope: ExamineOptions['scope'];
  /** Aborts at the end, and for reads that several checks share, after the deadline of a check. */
  readonly signal: AbortSignal;
  readonly closing: (() => Promise<void>)[];
}

export async function examine(
  context: DoctorContext,
  config: Config,
  { scope, signal, onProgress }: ExamineOptions,
): Promise<readonly CheckResult[]> {
  const ended = new AbortController();
  const shared = AbortSignal.any([signal, ended.signal]);
  context.clock.sleep(CHECK_DEADLINE_MS, { signal: shared }).then(
    () => ended.abort(),
    () => undefined,
  );
  const examination = { context, config, scope, signal: shared, closing: [] };
  try {
    const results = await runChecks(listSources(examination), {
      clock: context.clock,
      signal,
      onProgress,
    });
    return sortResults(results);
  } finally {
    ended.abort();
    await Promise.allSettled(examination.closing.map((close: () => Promise<void>) => close()));
  }
}

function listSources(examination: Examination): readonly Source[] {
  const { context, config, scope } = examination;
  const readsKubernetes = scope === 'all';
  return [
    secretChecks(context, config, readsKubernetes),
    fileChecks(context, config),
    checksumChecks(context, config),
    ...Object.values(config.regions).flatMap((region) => regionSources(examination, region)),
    ...(readsKubernetes ? [clusterSource(examination)] : []),
  ];
}

function regionSources(
  examination: Examination,
  region: Config['regions'][string],
): readonly Source[] {
  const { context, config, signal, scope } = examination;
  if (scope === 'proxmox' && isInKubernetes(region))
    return [[skippedRegion(region.name, LOGIN_IN_KUBERNETES)]];
  const now = () => context.clock.now();
  const reader = new RegionReader({
    config,
    region,
    inspector: openRegion(examination, region),
    signal,
  });
  return [
    [
      ...endpointChecks(reader),
      ...hostsChecks(reader),
      // Over SSH, commands run as root, who has every privilege; the check `login` reports another user.
      ...(region.transport.kind === 'rest'
        ? [tokenCheck(reader, now), ...privilegeChecks(reader)]
        : []),
      seedStorageCheck(reader),
      vmIdCheck(reader),
      ...addressChecks(reader, now),
    ],
    listHostChecks(reader, now),
  ];
}

async function openRegion(
  { context, config, closing }: Examination,
  region: Config['regions'][string],
) {
  const inspector = await context.adapters.inspectProxmox(region, config.cluster);
  closing.push(() => inspector.close());
  return inspector;
}

const LOGIN_IN_KUBERNETES = 'its login is in a Secret of Kubernetes; run pvescaler doctor';

function skippedRegion(region: string, detail: string): Check {
  return {
    name: 'region',
    group: `region ${region}`,
    run: () => Promise.resolve(skipped(detail)),
  };
}

function isInKubernetes({ login, transport }: Config['regions'][string]): boolean {
  if (transport.kind === 'ssh') {
    return transport.login.kind === 'key' && transport.login.passphrase?.kind === 'kubernetes';
  }
  if (login.kind === 'none') return false;
  const source = login.kind === 'token' ? login.secret : login.password;
  return source.kind === 'kubernetes';
}

/** Of the hosts that may get machines; none while the region cannot be read. */
async function listHostChecks(reader: RegionReader, now: () => number): Promise<readonly Check[]> {
  const view = await reader.view().catch(() => undefined);
  if (view === undefined) return [];
  const connected = await reader.connectedHosts();
  return reader.usableHosts(view).flatMap((host) => {
    const group = `${reader.group}, host ${host.name}`;
    const checks = [
      clockCheck(reader, { host: host.name, group, now }),
      ...storageChecks(reader, host, group),
      ...networkChecks(reader, host.name, group),
      ...imageChecks(reader, host.name, group),
      ...templateChecks(reader, { host, view, group }),
    ];
    const isConnected = connected?.includes(host.name) !== false;
    if (host.online && isConnected) return checks;
    const reason = host.online ? 'is not reached over SSH' : 'is offline';
    return checks.map((check) => ({
      ...check,
      run: () => Promise.resolve(skipped(`${host.name} ${reason}`)),
    }));
  });
}

async function clusterSource(examination: Examination): Promise<readonly Check[]> {
  const { context, config, signal, closing } = examination;
  if (!needsCluster(config) && config.mode !== 'externalgrpc') return [];
  const opening = context.adapters.inspectKubernetes(config.cluster);
  const check = apiServerCheck(opening);
  const inspector = await opening.catch(() => undefined);
  if (inspector !== undefined) closing.push(() => inspector.close());
  const answers = await inspector?.version({ signal }).then(
    () => true,
    () => false,
  );
  const join = joinChecks({ context, config, inspector });
  if (inspector === undefined || answers !== true) {
    const unread = skippedWithoutCluster([
      'kubernetes-rights',
      'state',
      'pool-objects',
      'provider-ids',
      'cluster-autoscaler',
    ]);
    return [check, ...unread, ...join];
  }
  return [check, ...clusterChecks(inspector, config), ...join];
}

function clusterChecks(inspector: ClusterInspector, config: Config): readonly Check[] {
  return [
    ...rightChecks(inspector, config),
    stateCheck(inspector, config),
    poolObjectsCheck(inspector, config),
    providerIdCheck(inspector, config),
    clusterAutoscalerCheck(inspector, config),
  ];
}

/** Groups stay together, in the order in which they appeared; in a group the checks have their own order. */
function sortResults(results: readonly CheckResult[]): readonly CheckResult[] {
  const groups = [...new Set(results.map(({ group }) => group))];
  return groups.flatMap((group) =>
    results
      .filter((result) => result.group === group)
      .toSorted((a, b) => CHECK_NAMES.indexOf(a.name) - CHECK_NAMES.indexOf(b.name)),
  );
}
