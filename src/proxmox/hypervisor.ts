// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import type { CallOptions, Hypervisor, RegionView } from '../ports/hypervisor.ts';
import { GuestAgent } from './agent.ts';
import { formatVolumeId, Images } from './images.ts';
import { recordOf } from './json.ts';
import { Api, type ApiOptions } from './request.ts';
import { Sizes } from './sizes.ts';
import { TaskFollower } from './task-follower.ts';
import { Tasks } from './tasks.ts';
import { VersionGate } from './version.ts';
import { overviewOf } from './view.ts';
import { Vms } from './vms.ts';
import { Whereabouts } from './whereabouts.ts';

export interface ProxmoxOptions extends ApiOptions {
  readonly region: string;
}

/** One region over its REST API. The transport is closed with it. */
export function createProxmoxHypervisor(options: ProxmoxOptions): Hypervisor {
  const { region, clock, random } = options;
  const api = new Api(options);
  const whereabouts = new Whereabouts(api);
  const version = new VersionGate(api, clock);
  const tasks = new Tasks(api);
  const follower = new TaskFollower({ task: (task) => tasks.status(task, {}) }, clock);
  const sizes = new Sizes({ api, clock });
  const vms = new Vms({ api, whereabouts, version, noteConfig: (config) => sizes.note(config) });
  const images = new Images({ api, random, version, follower });
  const agent = new GuestAgent({ api, whereabouts, clock });
  const none: CallOptions = {};
  return {
    region,
    view: (call = none) => readView({ region, api, whereabouts, version, sizes, clock }, call),
    vmConfig: (vm, call = none) => vms.config(vm, call),
    vmState: (vm, call = none) => vms.state(vm, call),
    createVm: (order, call = none) => vms.create(order, call),
    cloneVm: (order, call = none) => vms.clone(order, call),
    applySpec: (vm, spec, call = none) => vms.applySpec(vm, spec, call),
    attachSeed: (vm, volumeId, call = none) => vms.attachSeed(vm, volumeId, call),
    ejectSeed: (vm, call = none) => vms.ejectSeed(vm, call),
    setDescription: (vm, description, call = none) => vms.setDescription(vm, description, call),
    removeProtection: (vm, call = none) => vms.removeProtection(vm, call),
    growBootDisk: (vm, bytes, call = none) => vms.growBootDisk(vm, bytes, call),
    startVm: (vm, call = none) => vms.start(vm, call),
    shutdownVm: (vm, timeoutMs, call = none) => vms.shutdown(vm, timeoutMs, call),
    stopVm: (vm, call = none) => vms.stop(vm, call),
    destroyVm: (vm, call = none) => vms.destroy(vm, call),
    task: (task, call = none) => tasks.status(task, call),
    runningTasks: (host, kind, call = none) => tasks.running(host, kind, call),
    taskLog: (task, lines, call = none) => tasks.log(task, lines, call),
    volumeId: formatVolumeId,
    // oxlint-disable-next-line max-params -- the port's own order
    volumes: (host, storage, content, call = none) =>
      images.volumes({ host, storage }, content, call),
    downloadImage: (order, call = none) => images.download(order, call),
    uploadIso: (file, call = none) => images.upload(file, call),
    deleteVolume: (host, volumeId, call = none) => images.delete(host, volumeId, call),
    guestIsUp: (vm, call = none) => agent.isUp(vm, call),
    guestInterfaces: (vm, call = none) => agent.interfaces(vm, call),
    guestExec: (vm, command, call = none) => agent.exec(vm, command, call),
    permissions: (path, call = none) => readPermissions(api, path, call),
    close: () => api.close(),
  };
}

interface ViewParts {
  readonly region: string;
  readonly api: Api;
  readonly whereabouts: Whereabouts;
  readonly version: VersionGate;
  readonly sizes: Sizes;
  readonly clock: Clock;
}

async function readView(parts: ViewParts, call: CallOptions): Promise<RegionView> {
  const version = await parts.version.current(call);
  const data = await parts.api.data({
    method: 'GET',
    path: '/cluster/resources',
    doing: 'read the overview',
    ...call,
  });
  const overview = overviewOf(parts.region, data);
  const takenAt = parts.clock.now();
  parts.whereabouts.noteAll(overview.vms);
  const online = new Set(overview.hosts.filter((host) => host.online).map((host) => host.name));
  const vms = await parts.sizes.fill(overview.vms, online, call);
  return { region: parts.region, takenAt, version, ...overview, vms };
}

async function readPermissions(
  api: Api,
  path: string,
  call: CallOptions,
): Promise<readonly string[]> {
  const data = await api.data({
    method: 'GET',
    path: '/access/permissions',
    query: { path },
    doing: `read the rights on ${path}`,
    ...call,
  });
  // A right is there when it is named; its value only says whether it is handed down.
  return Object.keys(recordOf(recordOf(data)[path])).sort();
}
