// SPDX-License-Identifier: Apache-2.0
// Opens the store, connects the adapters of the config, and creates the fleet on them.
import type { Config } from '../config/index.ts';
import type { CheckDrain, DriverRegistry, Fleet, FleetSettings } from '../fleet/index.ts';
import type { Cluster } from '../ports/cluster.ts';
import { PvescalerError } from '../ports/errors.ts';
import type { Hypervisor } from '../ports/hypervisor.ts';
import type { Store } from '../ports/store.ts';
import { resolveClusterId } from './cluster-id.ts';
import type { ConnectedCluster, ConnectOptions, SetupContext, Telemetry } from './context.ts';
import { fleetSettings } from './fleet-settings.ts';
import { imageChecksums } from './image-checksums.ts';
import { readJoinSettings } from './join-settings.ts';
import { openLocalStore, openRecords } from './open-store.ts';

export interface OpenFleet {
  readonly fleet: Fleet;
  readonly store: Store;
  /** With which it was opened. */
  readonly config: Config;
  /** Reads what another config refers to, for `fleet.replaceSettings`. What needs a restart must be the same in it. */
  readSettings(config: Config): Promise<FleetSettings>;
  readonly hypervisors: ReadonlyMap<string, Hypervisor>;
  /** Undefined without access to Kubernetes, and with access 'read'. */
  readonly cluster: Cluster | undefined;
  close(): Promise<void>;
}

export interface OpenOptions {
  /**
   * 'read' needs an existing database; 'view' also connects to Proxmox and changes nothing there; 'drive' creates the
   * database and connects to Proxmox and Kubernetes.
   */
  readonly access: 'read' | 'view' | 'drive';
  /** False: creates no machines as a rule, so an unreadable join token is an error only when it is needed. */
  readonly checksTokens?: boolean | undefined;
  readonly adjust?: ((settings: FleetSettings) => FleetSettings) | undefined;
  readonly warn: (warning: string) => void;
  readonly checkDrain?: CheckDrain | undefined;
  readonly telemetry?: Telemetry | undefined;
  /** Which objects of the cluster are watched. Default: Nodes. */
  readonly watch?: 'nodes' | 'all' | undefined;
}

type CloseStep = () => Promise<unknown>;

export async function openFleet(
  context: SetupContext,
  config: Config,
  options: OpenOptions,
): Promise<OpenFleet> {
  const closeSteps: CloseStep[] = [];
  const close = async () => {
    for (const closeStep of closeSteps.splice(0).toReversed()) await closeStep();
  };
  try {
    return { ...(await open(context, config, { ...options, closeSteps })), close };
  } catch (error) {
    await close();
    throw error;
  }
}

interface OpeningFleet extends OpenOptions {
  readonly closeSteps: CloseStep[];
}

async function open(
  context: SetupContext,
  config: Config,
  opening: OpeningFleet,
): Promise<Omit<OpenFleet, 'close'>> {
  const { adapters, clock, random } = context;
  const isDriving = opening.access === 'drive';
  const { createFleet, DriverRegistry: Registry } = await import('../fleet/index.ts');
  const local = await openLocalStore(adapters, config, isDriving);
  opening.closeSteps.push(() => local.store.close());
  for (const warning of local.warnings) opening.warn(warning);
  const driverRegistry = new Registry(clock, local.driverLock);
  const store = await openStore(context, config, {
    ...opening,
    driverRegistry,
    local: local.store,
  });
  const hypervisors =
    opening.access === 'read'
      ? new Map<string, Hypervisor>()
      : await connectRegions(context, config, { ...opening, driverRegistry });
  const connected = isDriving
    ? await connectCluster(context, config, { ...opening, driverRegistry })
    : undefined;
  const identity = {
    cluster: await resolveClusterId(context, config, {
      store,
      cluster: connected?.cluster,
      isDriving,
    }),
    holder: `${context.processName}/${context.random.uuid().slice(0, 8)}`,
  };
  const readSettings = async (next: Config) => {
    const { warn, checksTokens } = opening;
    const input = { identity, isDriving, connected, warn, checksTokens };
    const settings = await resolveSettings(context, next, input);
    return opening.adjust?.(settings) ?? settings;
  };
  const fleet = createFleet({
    store,
    hypervisors,
    cluster: connected?.cluster,
    clock,
    random,
    settings: await readSettings(config),
    driverRegistry,
    checkDrain: opening.checkDrain,
    onBug: (error, subject) =>
      opening.telemetry?.log.error('unexpected error; please report it', { subject, error }),
  });
  return { fleet, store, config, hypervisors, cluster: connected?.cluster, readSettings };
}

interface Connecting extends OpeningFleet {
  readonly driverRegistry: DriverRegistry;
}

async function openStore(
  { adapters }: SetupContext,
  config: Config,
  { local, telemetry, driverRegistry: fence, closeSteps }: Connecting & { readonly local: Store },
): Promise<Store> {
  const onBackgroundError = (error: PvescalerError) => logBackgroundError(telemetry, error);
  const store = await openRecords(adapters, config, { local, fence, onBackgroundError });
  if (store !== local) closeSteps.push(() => store.close());
  return telemetry?.instrumentStore(store) ?? store;
}

function logBackgroundError(telemetry: Telemetry | undefined, error: PvescalerError): void {
  telemetry?.log.debug('an error occurred in the background', { error });
}

function connectOptions(
  { cluster }: Config,
  { telemetry, driverRegistry, watch = 'nodes' }: Connecting,
): ConnectOptions {
  const onBackgroundError = (error: PvescalerError) => logBackgroundError(telemetry, error);
  return { fence: driverRegistry, cluster, meters: telemetry?.meters, onBackgroundError, watch };
}

async function connectRegions(
  { adapters }: SetupContext,
  config: Config,
  connecting: Connecting,
): Promise<ReadonlyMap<string, Hypervisor>> {
  const { warn, closeSteps } = connecting;
  const hypervisors = new Map<string, Hypervisor>();
  for (const region of Object.values(config.regions)) {
    const opened = await adapters
      .connectProxmox(region, connectOptions(config, connecting))
      .catch((error: unknown) => warnUnlessDriving(connecting, region.name, error));
    if (opened === undefined) continue;
    const { hypervisor, warnings } = opened;
    closeSteps.push(() => hypervisor.close());
    for (const warning of warnings) warn(warning);
    hypervisors.set(region.name, hypervisor);
  }
  return hypervisors;
}

/** The records are useful without Proxmox. */
function warnUnlessDriving(
  { access, warn }: Connecting,
  region: string,
  error: unknown,
): undefined {
  if (access === 'drive' || !(error instanceof PvescalerError)) throw error;
  warn(`region ${region} cannot be read, so the records are shown: ${error.message}`);
}

async function connectCluster(
  { adapters, environment }: SetupContext,
  config: Config,
  connecting: Connecting,
): Promise<ConnectedCluster | undefined> {
  if (!shouldConnectKubernetes(config, environment)) return undefined;
  const connected = await adapters.connectKubernetes(
    config.cluster,
    connectOptions(config, connecting),
  );
  if (connected !== undefined) connecting.closeSteps.push(() => connected.cluster.close());
  return connected;
}

/** A kubeconfig that is only found by default does not count: no pool may join its cluster. */
export function needsCluster({ cluster, pools, state }: Config): boolean {
  return (
    cluster.kubeconfigPath !== undefined ||
    cluster.poolObjects ||
    state.kubernetes !== undefined ||
    pools.some(({ joins }) => joins)
  );
}

/**
 * The Cluster Autoscaler identifies machines by their Nodes, including those of pools with `join: none`. In a pod that
 * cluster is known; outside, the config must name it.
 */
export function shouldConnectKubernetes(
  config: Config,
  environment: SetupContext['environment'],
): boolean {
  const isInPod = environment['KUBERNETES_SERVICE_HOST'] !== undefined;
  return needsCluster(config) || (config.mode === 'externalgrpc' && isInPod);
}

interface SettingsInput {
  /** The same in all settings of the process. */
  readonly identity: Pick<FleetSettings, 'cluster' | 'holder'>;
  readonly isDriving: boolean;
  readonly connected: ConnectedCluster | undefined;
  readonly warn: (warning: string) => void;
  readonly checksTokens: boolean | undefined;
}

async function resolveSettings(
  context: SetupContext,
  config: Config,
  { identity, isDriving, connected, warn, checksTokens = true }: SettingsInput,
): Promise<FleetSettings> {
  const keys = isDriving ? config.ssh.publicKeyPaths : [];
  const files = await Promise.all(keys.map((path) => context.files.read(path)));
  return fleetSettings(config, {
    ...identity,
    readChecksum: imageChecksums(context, config),
    publicKeys: files.flatMap((text) => (text === undefined ? [] : [text.trim()])),
    joins: isDriving
      ? await readJoinSettings(config, { context, server: connected?.server, warn, checksTokens })
      : {},
  });
}
