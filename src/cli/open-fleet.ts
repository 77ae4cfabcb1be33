// SPDX-License-Identifier: Apache-2.0
// A fleet on the adapters that the config asks for.
import type { Config } from '../config/index.ts';
import type { DriverRegistry, Fleet, FleetSettings } from '../fleet/index.ts';
import type { Cluster } from '../ports/cluster.ts';
import type { PvescalerError } from '../ports/errors.ts';
import type { Hypervisor } from '../ports/hypervisor.ts';
import type { Store } from '../ports/store.ts';
import { clusterId } from './cluster-id.ts';
import type { CliContext, ConnectedCluster, Telemetry } from './context.ts';
import { fleetSettings, joins } from './fleet-settings.ts';
import { imageChecksums } from './image-checksums.ts';
import { joinSettings } from './join-settings.ts';

export interface OpenFleet {
  readonly fleet: Fleet;
  readonly store: Store;
  readonly config: Config;
  readonly hypervisors: ReadonlyMap<string, Hypervisor>;
  /** Undefined without access to Kubernetes, and for commands that only look. */
  readonly cluster: Cluster | undefined;
  close(): Promise<void>;
}

export interface OpenOptions {
  readonly to: 'look' | 'drive';
  readonly adjust?: ((settings: FleetSettings) => FleetSettings) | undefined;
  readonly warn: (warning: string) => void;
  readonly telemetry?: Telemetry | undefined;
}

type Closing = () => Promise<unknown>;

export async function openFleet(
  context: CliContext,
  config: Config,
  options: OpenOptions,
): Promise<OpenFleet> {
  const closings: Closing[] = [];
  const close = async () => {
    for (const closing of closings.splice(0).toReversed()) await closing();
  };
  try {
    return { ...(await open(context, config, { ...options, closings })), close };
  } catch (error) {
    await close();
    throw error;
  }
}

interface Opening extends OpenOptions {
  readonly closings: Closing[];
}

async function open(
  context: CliContext,
  config: Config,
  opening: Opening,
): Promise<Omit<OpenFleet, 'close'>> {
  const { adapters, clock, random } = context;
  const isDriving = opening.to === 'drive';
  const { path } = config.state;
  const opened = await (isDriving ? adapters.makeStore(path) : adapters.openStore(path));
  opening.closings.push(() => opened.store.close());
  for (const warning of opened.warnings) opening.warn(warning);
  const store = opening.telemetry?.telling(opened.store) ?? opened.store;
  const { createFleet, DriverRegistry: ThroneOfProcess } = await import('../fleet/index.ts');
  const driverRegistry = new ThroneOfProcess(clock);
  const outside = isDriving
    ? await connectAll(context, config, { ...opening, driverRegistry })
    : { hypervisors: new Map<string, Hypervisor>(), connected: undefined };
  const { hypervisors, connected } = outside;
  const settings = await settingsOf(context, config, {
    store,
    isDriving,
    connected,
    warn: opening.warn,
  });
  const fleet = createFleet({
    store,
    hypervisors,
    cluster: connected?.cluster,
    clock,
    random,
    settings: opening.adjust?.(settings) ?? settings,
    driverRegistry,
  });
  return { fleet, store, config, hypervisors, cluster: connected?.cluster };
}

interface Outside {
  readonly hypervisors: ReadonlyMap<string, Hypervisor>;
  readonly connected: ConnectedCluster | undefined;
}

async function connectAll(
  { adapters, environment }: CliContext,
  config: Config,
  {
    warn,
    telemetry,
    driverRegistry,
    closings,
  }: Opening & { readonly driverRegistry: DriverRegistry },
): Promise<Outside> {
  const onError = (error: PvescalerError) =>
    telemetry?.log.debug('trouble in the background', { error });
  const how = { fence: driverRegistry, meters: telemetry?.meters, onError };
  const hypervisors = new Map<string, Hypervisor>();
  for (const region of Object.values(config.regions)) {
    const { hypervisor, warnings } = await adapters.connect(region, how);
    closings.push(() => hypervisor.close());
    for (const warning of warnings) warn(warning);
    hypervisors.set(region.name, hypervisor);
  }
  const connected = wantsCluster(config, environment)
    ? await adapters.connectCluster(config.cluster, how)
    : undefined;
  if (connected !== undefined) closings.push(() => connected.cluster.close());
  return { hypervisors, connected };
}

/** Somebody's kubeconfig lying around is no reason to wait for a cluster that no pool joins. */
export function needsCluster({ cluster, pools }: Config): boolean {
  return cluster.kubeconfigPath !== undefined || pools.some(joins);
}

/**
 * The Cluster Autoscaler knows machines by their Nodes, also those that join by themselves. Inside a cluster there is no
 * doubt about which one that is; outside, the config names it.
 */
function wantsCluster(config: Config, environment: CliContext['environment']): boolean {
  const isInside = environment['KUBERNETES_SERVICE_HOST'] !== undefined;
  return needsCluster(config) || (config.mode === 'externalgrpc' && isInside);
}

interface Known {
  readonly store: Store;
  readonly isDriving: boolean;
  readonly connected: ConnectedCluster | undefined;
  readonly warn: (warning: string) => void;
}

async function settingsOf(
  context: CliContext,
  config: Config,
  { store, isDriving, connected, warn }: Known,
): Promise<FleetSettings> {
  const keys = isDriving ? config.ssh.publicKeyPaths : [];
  const files = await Promise.all(keys.map((path) => context.files.read(path)));
  return fleetSettings(config, {
    cluster: await clusterId(context, config, { store, cluster: connected?.cluster }),
    holder: `${context.processName}/${context.random.uuid().slice(0, 8)}`,
    checksums: isDriving ? await imageChecksums(context, config) : {},
    publicKeys: files.flatMap((text) => (text === undefined ? [] : [text.trim()])),
    joins: isDriving
      ? await joinSettings(config, { context, server: connected?.server, warn })
      : {},
  });
}
