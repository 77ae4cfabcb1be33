// SPDX-License-Identifier: Apache-2.0
// The effective config that the rest of the program receives: complete, valid, readonly, with units in
// names. `undefined` is an explicit value in it (no VLAN, no proxy), never a default that the reader must
// know.
import type { ConfigFile } from '../schema/index.ts';
import { parseListenAddress } from '../values/listen-address.ts';
import {
  type BuildContext,
  toListenAddress,
  toMs,
  toOptionalPath,
  unwrapParsed,
} from './convert.ts';
import { buildJoin } from './join.ts';
import { buildPool } from './pool.ts';
import { buildRegion } from './region.ts';
import { type Folders, resolvePath } from './resolve-path.ts';
import { buildImage, buildSize, buildTemplate } from './sources.ts';
import { buildVms, vmSizeFiles } from './vms.ts';

type DeepReadonly<T> = T extends (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : T extends object
    ? { readonly [K in keyof T]: DeepReadonly<T[K]> }
    : T;

export type Config = DeepReadonly<ReturnType<typeof build>>;
export type RegionConfig = Config['regions'][string];
export type PoolConfig = Config['pools'][number];
export type ImageConfig = Config['images'][string];
export type TemplateConfig = Config['templates'][string];

/** Builds the config from a file that passed all checks. */
export function buildConfig(file: ConfigFile, folders: Folders): Config {
  return build(file, { folders, namespace: file.cluster.namespace });
}

function build(file: ConfigFile, context: BuildContext) {
  return {
    apiVersion: file.apiVersion,
    mode: file.mode,
    cluster: {
      name: file.cluster.name,
      id: file.cluster.id,
      kubeconfigPath: toOptionalPath(file.cluster.kubeconfig, context),
      context: file.cluster.context,
      cloudController: file.cluster.cloudController,
      namespace: file.cluster.namespace,
      poolObjects: file.cluster.poolObjects ?? file.state.kubernetes !== undefined,
    },
    state: {
      path: resolvePath(file.state.path, context.folders),
      kubernetes:
        file.state.kubernetes === undefined
          ? undefined
          : { namespace: file.state.kubernetes.namespace ?? file.cluster.namespace },
    },
    ...buildServers(file, context),
    intervals: {
      reconcileMs: toMs(file.intervals.reconcile),
      scanMs: toMs(file.intervals.scan),
    },
    cleanup: { lostAfterMs: toMs(file.cleanup.lostAfter), orphans: file.cleanup.orphans },
    regions: mapValues(file.proxmox, (region, name) => buildRegion(name, region, context)),
    images: mapValues(file.images, (image, name) => buildImage(name, image)),
    templates: mapValues(file.templates, (template, name) => buildTemplate(name, template)),
    sizes: mapValues(file.sizes, buildSize),
    vms: { ...buildVms(file), sizesByName: mapValues(vmSizeFiles(file), buildSize) },
    ssh: {
      user: file.ssh.user,
      publicKeys: file.ssh.publicKeys.map((line) => line.trim()),
      publicKeyPaths: file.ssh.publicKeyFiles.map((path) => resolvePath(path, context.folders)),
      privateKeyPath: toOptionalPath(file.ssh.privateKeyFile, context),
    },
    readiness: {
      timeoutMs: toMs(file.readiness.timeout),
      sshIntervalMs: toMs(file.readiness.sshInterval),
    },
    join: buildJoin(file.join, context),
    ...buildPolicy(file),
    pools: file.pools.map((pool) => buildPool(pool, file)),
  };
}

function buildServers({ grpc, http, log }: ConfigFile, context: BuildContext) {
  const { tls, expander } = grpc;
  return {
    grpc: {
      listen: unwrapParsed(parseListenAddress(grpc.listen)),
      insecure: grpc.insecure,
      tls:
        tls === undefined
          ? undefined
          : {
              certPath: resolvePath(tls.cert, context.folders),
              keyPath: resolvePath(tls.key, context.folders),
              clientCaPath: resolvePath(tls.clientCa, context.folders),
              allow: tls.allow,
            },
      expander:
        expander === undefined
          ? undefined
          : { listen: unwrapParsed(parseListenAddress(expander.listen)) },
    },
    http: {
      health: toListenAddress(http.health),
      metrics: http.metrics,
      dashboard: toListenAddress(http.dashboard),
      dashboardTokenFile:
        http.dashboardTokenFile === undefined
          ? undefined
          : resolvePath(http.dashboardTokenFile, context.folders),
      dashboardHosts: http.dashboardHosts.map((name) => name.toLowerCase()),
    },
    log,
  };
}

function buildPolicy({ guards, autoscaler, pricing, gpu }: ConfigFile) {
  return {
    guards: {
      maxTotalUnreadyPercentage: guards.maxTotalUnreadyPercentage,
      okTotalUnreadyCount: guards.okTotalUnreadyCount,
      backoff: {
        initialMs: toMs(guards.backoff.initial),
        maxMs: toMs(guards.backoff.max),
      },
      breaker: {
        machines: guards.breaker.machines,
        pauseMs: toMs(guards.breaker.pause),
      },
    },
    autoscaler: {
      expendablePriority: autoscaler.expendablePriority,
      newPodDelayMs: toMs(autoscaler.newPodDelay),
      poolChoice: autoscaler.poolChoice,
    },
    pricing,
    gpu,
  };
}

function mapValues<From, To>(
  record: Readonly<Record<string, From>>,
  change: (value: From, key: string) => To,
): Record<string, To> {
  return Object.fromEntries(
    Object.entries(record).map(([key, value]) => [key, change(value, key)]),
  );
}
