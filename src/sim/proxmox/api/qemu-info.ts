// SPDX-License-Identifier: Apache-2.0
// Further information about a VM: features, migration preconditions, firewall, RRD data.
import { serverError } from '../api-error.ts';
import { type Call, type Handlers, requireQuorum, withVmLock } from '../core.ts';
import type { Vm } from '../state/model.ts';
import {
  isStorageAvailable,
  parseVolumeId,
  requireStorage,
  splitVolumeId,
} from '../storage/volumes.ts';
import { checkLock, findVm, loadVm } from '../vm/config.ts';
import { isCdrom, parseDrives } from '../vm/drives.ts';
import { canSnapshot } from '../vm/snapshots.ts';

function findStorages(vm: Vm): readonly string[] {
  const ids = parseDrives(vm.config).map(([, drive]) => splitVolumeId(drive.file)?.storage);
  return [...new Set(ids.filter((id) => id !== undefined))];
}

function isBaseVolume(file: string): boolean {
  return parseVolumeId(file).name.split('/').at(-1)?.startsWith('base-') === true;
}

function checkFeature(call: Call): unknown {
  const id = call.integer('vmid');
  const vm = findVm(call.core, call.host, id);
  const name = call.optional('snapname');
  if (name !== undefined && !vm.snapshots.some((known) => known.name === name)) {
    throw serverError(`snapshot '${name}' does not exist`);
  }
  const disks = parseDrives(vm.config).filter(([, drive]) => !isCdrom(drive));
  const has = {
    snapshot: canSnapshot(call, vm),
    clone: disks.every(([, drive]) => isBaseVolume(drive.file)),
    copy: true,
  };
  const storages = findStorages(vm).map((storage) => requireStorage(call.state, storage));
  const nodes = [...call.state.hosts.keys()].filter((host) =>
    storages.every((storage) => storage.shared && isStorageAvailable(storage, host)),
  );
  const requested = call.text('feature');
  const hasFeature = requested === 'snapshot' || requested === 'clone' ? has[requested] : has.copy;
  return { hasFeature: hasFeature ? 1 : 0, nodes };
}

/** For each other host: the storages it lacks for a migration of this VM. */
function listMigrationPreconditions(call: Call): unknown {
  requireQuorum(call.core);
  const { state } = call;
  const vm = loadVm(call.core, call.host, call.integer('vmid'));
  checkLock(vm);
  const others = [...state.hosts.keys()].filter((host) => host !== call.host);
  const missing = (host: string) =>
    findStorages(vm).filter((id) => !isStorageAvailable(requireStorage(state, id), host));
  const local = parseDrives(vm.config).filter(([, drive]) => {
    const id = splitVolumeId(drive.file);
    return id !== undefined && !requireStorage(state, id.storage).shared;
  });
  return {
    running: vm.running === undefined ? 0 : 1,
    allowed_nodes: others.filter((host) => missing(host).length === 0),
    not_allowed_nodes: Object.fromEntries(
      others
        .filter((host) => missing(host).length > 0)
        .map((host) => [host, { unavailable_storages: missing(host) }]),
    ),
    local_disks: local.map(([slot, drive]) => ({
      volid: drive.file,
      drivename: slot,
      cdrom: isCdrom(drive) ? 1 : 0,
    })),
    local_resources: [],
    'mapped-resources': [],
    'mapped-resource-info': {},
    ...(state.version === '8.4' ? {} : { 'has-dbus-vmstate': 1 }),
  };
}

async function sendKey(call: Call): Promise<null> {
  const id = call.integer('vmid');
  return await withVmLock(call.core, { host: call.host, id }, async () => {
    const vm = loadVm(call.core, call.host, id);
    if (vm.running === undefined) throw serverError(`VM ${id} not running`);
    await Promise.resolve();
    return null;
  });
}

const VM_PATH = '/nodes/{node}/qemu/{vmid}';

/** The simulator has no firewall: these lists are empty. */
const EMPTY_FIREWALL_LISTS = ['aliases', 'ipset', 'rules', 'refs'].map(
  (name) => [`GET ${VM_PATH}/firewall/${name}`, () => []] as const,
);

export const QEMU_INFO_HANDLERS: Handlers = {
  ...Object.fromEntries(EMPTY_FIREWALL_LISTS),
  [`GET ${VM_PATH}/firewall`]: () =>
    ['rules', 'aliases', 'ipset', 'refs', 'options', 'log'].map((name) => ({ name })),
  [`GET ${VM_PATH}/firewall/options`]: () => ({
    digest: 'da39a3ee5e6b4b0d3255bfef95601890afd80709',
  }),
  [`GET ${VM_PATH}/feature`]: checkFeature,
  [`GET ${VM_PATH}/migrate`]: listMigrationPreconditions,
  [`PUT ${VM_PATH}/sendkey`]: sendKey,
  [`GET ${VM_PATH}/rrddata`]: () => [],
  'GET /nodes/{node}/storage/{storage}/rrddata': () => [],
  'GET /cluster/mapping/dir': () => [],
  'GET /cluster/mapping/pci': () => [],
  'GET /cluster/mapping/usb': () => [],
  'GET /cluster/sdn/vnets': () => [],
  'GET /cluster/sdn/zones': () => [],
  'GET /nodes/{node}/hardware/pci': () => [],
  'GET /nodes/{node}/hardware/usb': () => [],
};
