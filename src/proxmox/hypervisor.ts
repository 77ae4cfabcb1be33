// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import type { CallOptions, Hypervisor, RegionView } from '../ports/hypervisor.ts';
import type { Transport } from '../ports/transport.ts';
import { ApiClient, type ApiClientOptions } from './api-client.ts';
import { parseClusterResources } from './cluster-resources.ts';
import { GuestAgent } from './guest-agent.ts';
import { formatEndpoint, PveshTransport, type SshHost } from './pvesh/transport.ts';
import { TaskFollower, Tasks } from './tasks.ts';
import { VersionCheck } from './version.ts';
import { VmHosts } from './vm-hosts.ts';
import { VmSizes } from './vm-sizes.ts';
import { Vms } from './vms.ts';
import { formatVolumeId, type StageFile, Volumes } from './volumes.ts';
import { asBoolean, asNumber, asObject, asObjects, asText, encodeSegment } from './wire-values.ts';

export interface ProxmoxOptions extends ApiClientOptions {
  readonly region: string;
  /** Absent: files are part of the request. */
  readonly stageFile?: StageFile | undefined;
}

export interface ProxmoxOverSshOptions
  extends Pick<ProxmoxOptions, 'region' | 'clock' | 'random' | 'limits'> {
  readonly hosts: readonly SshHost[];
  /** Wraps the transport, to fence or measure requests. */
  readonly wrap?: (transport: Transport) => Transport;
}

/** The same over `pvesh` and `qm` on the hosts, as root. */
export function createProxmoxOverSsh(options: ProxmoxOverSshOptions): Hypervisor {
  return createProxmoxHypervisor(overSsh(options).settings);
}

export function overSsh(options: ProxmoxOverSshOptions): {
  readonly settings: ProxmoxOptions;
  readonly pvesh: PveshTransport;
} {
  const { hosts, wrap = (transport) => transport, random } = options;
  const pvesh = new PveshTransport(hosts);
  const settings: ProxmoxOptions = {
    ...options,
    endpoints: hosts.map(formatEndpoint),
    credentials: { kind: 'transport', user: 'root@pam' },
    transport: wrap(pvesh),
    stageFile: (file, { signal }) =>
      pvesh.stageFile(file, { timeoutMs: STAGE_TIMEOUT_MS, signal, random }),
  };
  return { settings, pvesh };
}

/** A seed has well under a megabyte. */
const STAGE_TIMEOUT_MS = 60_000;

/** Creates the Hypervisor of one region. Closing it closes the transport. */
export function createProxmoxHypervisor(options: ProxmoxOptions): Hypervisor {
  const { region, clock, random } = options;
  const api = new ApiClient(options);
  const vmHosts = new VmHosts(api);
  const version = new VersionCheck(api, clock);
  const tasks = new Tasks(api);
  const follower = new TaskFollower({ task: (task) => tasks.status(task, {}) }, clock);
  const vmSizes = new VmSizes({ api, clock });
  const vms = new Vms({ api, vmHosts, version, onConfigRead: (config) => vmSizes.record(config) });
  const { stageFile } = options;
  const volumes = new Volumes({ api, random, version, follower, stageFile });
  const agent = new GuestAgent({ api, vmHosts, clock });
  const noOptions: CallOptions = {};
  return {
    region,
    view: (call = noOptions) => readView({ region, api, vmHosts, version, vmSizes, clock }, call),
    hostFingerprints: (call = noOptions) => readFingerprints(api, call),
    vmConfig: (vm, call = noOptions) => vms.config(vm, call),
    vmState: (vm, call = noOptions) => vms.state(vm, call),
    createVm: (order, call = noOptions) => vms.create(order, call),
    cloneVm: (order, call = noOptions) => vms.clone(order, call),
    applySpec: (vm, spec, call) => vms.applySpec(vm, spec, call),
    attachSeed: (vm, volumeId, call) => vms.attachSeed(vm, volumeId, call),
    ejectSeed: (vm, call) => vms.ejectSeed(vm, call),
    setDescription: (vm, description, call) => vms.setDescription(vm, description, call),
    removeProtection: (vm, call) => vms.removeProtection(vm, call),
    growBootDisk: (vm, bytes, call) => vms.growBootDisk(vm, bytes, call),
    startVm: (vm, call = noOptions) => vms.start(vm, call),
    shutdownVm: (vm, timeoutMs, call = noOptions) => vms.shutdown(vm, timeoutMs, call),
    stopVm: (vm, call = noOptions) => vms.stop(vm, call),
    destroyVm: (vm, call = noOptions) => vms.destroy(vm, call),
    convertToTemplate: (vm, call = noOptions) => vms.convertToTemplate(vm, call),
    task: (task, call = noOptions) => tasks.status(task, call),
    runningTasks: (host, kind, call = noOptions) => tasks.running(host, kind, call),
    taskLog: (task, lines, call = noOptions) => tasks.log(task, lines, call),
    volumeId: formatVolumeId,
    storageSpace: (host, call = noOptions) => readStorageSpace(api, host, call),
    // oxlint-disable-next-line max-params -- the port's own order
    volumes: (host, storage, content, call = noOptions) =>
      volumes.list({ host, storage }, content, call),
    downloadImage: (order, call = noOptions) => volumes.download(order, call),
    uploadIso: (file, call = noOptions) => volumes.upload(file, call),
    deleteVolume: (host, volumeId, call = noOptions) => volumes.delete(host, volumeId, call),
    guestIsUp: (vm, call = noOptions) => agent.isUp(vm, call),
    guestInterfaces: (vm, call = noOptions) => agent.interfaces(vm, call),
    guestExec: (vm, command, call = noOptions) => agent.exec(vm, command, call),
    permissions: (path, call = noOptions) => readPermissions(api, path, call),
    close: () => api.close(),
  };
}

interface ViewSources {
  readonly region: string;
  readonly api: ApiClient;
  readonly vmHosts: VmHosts;
  readonly version: VersionCheck;
  readonly vmSizes: VmSizes;
  readonly clock: Clock;
}

async function readView(sources: ViewSources, call: CallOptions): Promise<RegionView> {
  const version = await sources.version.current(call);
  const data = await sources.api.requestData({
    method: 'GET',
    path: '/cluster/resources',
    operation: 'read the cluster resources',
    ...call,
  });
  const resources = parseClusterResources(sources.region, data);
  const takenAt = sources.clock.now();
  sources.vmHosts.replaceAll(resources.vms);
  const online = new Set(resources.hosts.filter((host) => host.online).map((host) => host.name));
  const vms = await sources.vmSizes.applyTo(resources.vms, online, call);
  return { region: sources.region, takenAt, version, ...resources, vms };
}

async function readFingerprints(
  api: ApiClient,
  call: CallOptions,
): Promise<ReadonlyMap<string, string>> {
  const data = await api.requestData({
    method: 'GET',
    path: '/nodes',
    operation: "read the hosts' fingerprints",
    ...call,
  });
  const fingerprints = new Map<string, string>();
  for (const entry of asObjects(data)) {
    const [host, fingerprint] = [asText(entry['node']), asText(entry['ssl_fingerprint'])];
    if (host !== undefined && fingerprint !== undefined) fingerprints.set(host, fingerprint);
  }
  return fingerprints;
}

const STORAGE_TIMEOUT_MS = 10_000;

async function readStorageSpace(
  api: ApiClient,
  host: string,
  call: CallOptions,
): Promise<ReadonlyMap<string, number>> {
  const data = await api.requestData({
    method: 'GET',
    path: `/nodes/${encodeSegment(host)}/storage`,
    // Proxmox does not query storages without this content, such as an NFS export for backups.
    query: { content: 'images', enabled: true },
    operation: `read the free space of the storages of ${host}`,
    host,
    timeoutMs: STORAGE_TIMEOUT_MS,
    ...call,
  });
  return new Map(
    asObjects(data).flatMap((entry) => {
      const [name, available] = [asText(entry['storage']), asNumber(entry['avail'])];
      const isUsable = name !== undefined && available !== undefined && asBoolean(entry['active']);
      return isUsable ? [[name, available] as const] : [];
    }),
  );
}

async function readPermissions(
  api: ApiClient,
  path: string,
  call: CallOptions,
): Promise<readonly string[]> {
  const data = await api.requestData({
    method: 'GET',
    path: '/access/permissions',
    query: { path },
    operation: `read the permissions on ${path}`,
    ...call,
  });
  // Every listed privilege is granted; its value only states whether it propagates to subpaths.
  return Object.keys(asObject(asObject(data)[path])).sort();
}
