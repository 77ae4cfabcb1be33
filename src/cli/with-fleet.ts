// SPDX-License-Identifier: Apache-2.0
// Opens what a command needs to look at the fleet, or to drive it, and closes it whatever happens.
import type { Config } from '../config/index.ts';
import type { Fleet, FleetSettings } from '../fleet/index.ts';
import type { Hypervisor } from '../ports/hypervisor.ts';
import type { Store } from '../ports/store.ts';
import { type ConfigOptions, readConfigFor } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { fleetSettings } from './fleet-settings.ts';
import { imageChecksums } from './image-checksums.ts';
import { tellFaults } from './tell-problems.ts';

export interface OpenFleet {
  readonly fleet: Fleet;
  readonly store: Store;
  readonly config: Config;
}

interface Access {
  /** Looking reads an existing database only; driving connects to Proxmox and may make one. */
  readonly to: 'look' | 'drive';
  readonly adjust?: (settings: FleetSettings) => FleetSettings;
}

export async function withFleet(
  host: CommandHost,
  options: ConfigOptions,
  work: Access & { readonly use: (open: OpenFleet) => Promise<void> },
): Promise<void> {
  const result = await readConfigFor(host.context, options);
  if (!result.ok) return tellFaults(host, result.problems);
  const { config } = result;
  const { adapters } = host.context;
  const isDriving = work.to === 'drive';
  const opened = await (isDriving
    ? adapters.makeStore(config.state.path)
    : adapters.openStore(config.state.path));
  const hypervisors = new Map<string, Hypervisor>();
  try {
    for (const warning of opened.warnings) host.context.err(`warning: ${warning}\n`);
    if (isDriving) await connectAll(host, config, hypervisors);
    const settings = await settingsOf(host, config, { store: opened.store, isDriving });
    const { clock, random } = host.context;
    const { createFleet } = await import('../fleet/index.ts');
    const fleet = createFleet({
      store: opened.store,
      hypervisors,
      clock,
      random,
      settings: work.adjust?.(settings) ?? settings,
    });
    await work.use({ fleet, store: opened.store, config });
  } finally {
    await Promise.all([...hypervisors.values()].map((hypervisor) => hypervisor.close()));
    await opened.store.close();
  }
}

async function connectAll(
  host: CommandHost,
  config: Config,
  into: Map<string, Hypervisor>,
): Promise<void> {
  for (const region of Object.values(config.regions)) {
    const { hypervisor, warnings } = await host.context.adapters.connect(region);
    for (const warning of warnings) host.context.err(`warning: ${warning}\n`);
    into.set(region.name, hypervisor);
  }
}

async function settingsOf(
  host: CommandHost,
  config: Config,
  { store, isDriving }: { readonly store: Store; readonly isDriving: boolean },
): Promise<FleetSettings> {
  const { context } = host;
  const keys = isDriving ? config.ssh.publicKeyPaths : [];
  const files = await Promise.all(keys.map((path) => context.files.read(path)));
  return fleetSettings(config, {
    cluster: await clusterId(host, config, store),
    holder: `${context.processName}/${context.random.uuid().slice(0, 8)}`,
    checksums: isDriving ? await imageChecksums(context, config) : {},
    publicKeys: files.flatMap((text) => (text === undefined ? [] : [text.trim()])),
  });
}

/**
 * Without Kubernetes an id generated once says whose the machines are. It is kept beside the database too: who
 * loses the database must still recognise what is theirs.
 */
async function clusterId(host: CommandHost, config: Config, store: Store): Promise<string> {
  const { files, random } = host.context;
  const path = `${config.state.path}.cluster-id`;
  const kept = (await files.read(path))?.trim();
  const id = await store.installationId(kept === undefined || kept === '' ? random.uuid() : kept);
  if (kept === undefined) await files.write(path, `${id}\n`, { overwrite: false });
  return id;
}
