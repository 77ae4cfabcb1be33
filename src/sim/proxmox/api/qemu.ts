// SPDX-License-Identifier: Apache-2.0
// /nodes/{node}/qemu: lists, configuration, power, and the calls that vm/ implements.
import { ROOT_USER } from '../access/permissions.ts';
import { parameterError, serverError } from '../api-error.ts';
import { type Call, type Handlers, requireQuorum, startTask } from '../core.ts';
import { parseSize } from '../state/cluster-state.ts';
import type { Vm } from '../state/model.ts';
import { HA_POLL_INTERVAL_MS } from '../tasks/durations.ts';
import type { TaskContext } from '../tasks/engine.ts';
import { cloneVm } from '../vm/clone.ts';
import {
  cpuCount,
  findVm,
  formatConfig,
  formatOptionValue,
  isAgentEnabled,
  loadVm,
  memoryMib,
} from '../vm/config.ts';
import { createVm } from '../vm/create.ts';
import { destroyVm } from '../vm/destroy.ts';
import { createTemplate, moveDisk, resizeDisk } from '../vm/disk-tasks.ts';
import { migrateVm } from '../vm/migrate.ts';
import {
  type PowerRequest,
  rebootVm,
  resetVm,
  setPaused,
  shutdownVm,
  startVm,
  stopVm,
} from '../vm/power.ts';
import {
  deleteSnapshot,
  listSnapshots,
  rollbackSnapshot,
  snapshotConfig,
  takeSnapshot,
  updateSnapshot,
} from '../vm/snapshots.ts';
import { updateVm, updateVmInTask } from '../vm/update.ts';
import { findHaResource } from './ha.ts';

function diskBytes(vm: Vm): number {
  const size = /,size=(\d+[KMGT]?)/.exec(vm.config['scsi0'] ?? vm.config['virtio0'] ?? '')?.[1];
  return parseSize(size ?? '0') ?? 0;
}

function formatVmStatus(call: Call, vm: Vm): Record<string, unknown> {
  const { running } = vm;
  const { tags, lock, template } = vm.config;
  const memory = memoryMib(vm.config) * 2 ** 20;
  return {
    vmid: vm.id,
    name: vm.config['name'] ?? `VM ${vm.id}`,
    status: running === undefined ? 'stopped' : 'running',
    cpus: cpuCount(vm.config),
    cpu: running === undefined ? 0 : 0.01,
    maxmem: memory,
    mem: running === undefined ? 0 : Math.floor(memory * 0.6),
    maxdisk: diskBytes(vm),
    disk: 0,
    netin: 0,
    netout: 0,
    ...versionedStatus(call, running !== undefined),
    uptime:
      running === undefined ? 0 : Math.floor((call.state.clock.now() - running.startedAt) / 1000),
    ...(running === undefined ? {} : { pid: running.pid }),
    ...(template === '1' ? { template: 1 } : {}),
    ...(tags === undefined ? {} : { tags }),
    ...(lock === undefined ? {} : { lock }),
  };
}

const PRESSURES = ['cpusome', 'cpufull', 'iosome', 'iofull', 'memorysome', 'memoryfull'];

/** 9.x reports the host's memory and, of running VMs, pressure; disk statistics only in the status of a running VM. */
function versionedStatus(call: Call, isRunning: boolean): Record<string, number> {
  if (call.state.version === '8.4') return { diskread: 0, diskwrite: 0 };
  const pressures = isRunning ? PRESSURES.map((name) => [`pressure${name}`, 0] as const) : [];
  return { memhost: 0, ...Object.fromEntries(pressures) };
}

/** What QEMU itself reports of a running VM. */
function runningStatus(call: Call, vm: Vm): Record<string, unknown> {
  const memory = memoryMib(vm.config) * 2 ** 20;
  return {
    ...runningVersions(call),
    diskread: 0,
    diskwrite: 0,
    balloon: memory,
    ballooninfo: { actual: memory, max_mem: memory },
    'proxmox-support': {
      'pbs-dirty-bitmap': true,
      'pbs-dirty-bitmap-migration': true,
      'pbs-dirty-bitmap-savevm': true,
      'pbs-library-version': '1.5.1',
      'pbs-masterkey': true,
      'query-bitmap-info': true,
      'backup-fleecing': true,
      'backup-max-workers': true,
    },
  };
}

function listVms(call: Call): unknown {
  return [...call.state.vms.values()]
    .filter((vm) => vm.host === call.host)
    .filter((vm) => call.isAllowed({ path: `/vms/${vm.id}`, privileges: ['VM.Audit'] }))
    .map((vm) => formatVmStatus(call, vm));
}

function runningVersions(call: Call): Record<string, string> {
  return call.state.version === '8.4'
    ? { 'running-qemu': '9.2.0', 'running-machine': 'pc-i440fx-9.2+pve1' }
    : { 'running-qemu': '10.1.2', 'running-machine': 'pc-i440fx-10.1+pve0' };
}

function currentStatus(call: Call): unknown {
  const vm = loadVm(call.core, call.host, call.integer('vmid'));
  const ha = call.state.ha.get(`vm:${vm.id}`);
  const paused = vm.running?.paused === true;
  const shown = formatVmStatus(call, vm);
  return {
    ...shown,
    qmpstatus: paused ? 'paused' : shown['status'],
    ha: ha === undefined ? { managed: 0 } : { managed: 1, state: ha.state },
    ...(isAgentEnabled(vm.config) ? { agent: 1 } : {}),
    ...(vm.running === undefined ? {} : runningStatus(call, vm)),
    ...(call.state.version === '9.2' ? { memhost: shown['mem'] } : {}),
  };
}

function getConfig(call: Call): unknown {
  const vm = loadVm(call.core, call.host, call.integer('vmid'));
  const name = call.optional('snapshot');
  if (name === undefined || name === '') return formatConfig(call.state, vm, call.flag('current'));
  if (call.flag('current')) {
    const text = "cannot use 'snapshot' parameter with 'current'";
    throw parameterError({ snapshot: text, current: text });
  }
  const snapshot = vm.snapshots.find((known) => known.name === name);
  if (snapshot === undefined) throw serverError(`snapshot '${name}' does not exist`);
  return snapshot.config;
}

function listPending(call: Call): unknown {
  const vm = loadVm(call.core, call.host, call.integer('vmid'));
  const names = new Set([...Object.keys(vm.config), ...Object.keys(vm.pending), 'digest']);
  names.delete('digest');
  return [...names].map((key) => {
    const value = vm.config[key];
    const waiting = vm.pending[key];
    return {
      key,
      ...(value === undefined ? {} : { value: formatOptionValue(call.state, key, value) }),
      ...(waiting === undefined ? {} : { pending: formatOptionValue(call.state, key, waiting) }),
      ...(vm.pendingDelete.has(key) ? { delete: 1 } : {}),
    };
  });
}

/** Options that Proxmox hosts use between each other. */
const ROOT_ONLY_OPTIONS = [
  'stateuri',
  'skiplock',
  'keepActive',
  'nocheck',
  'migratedfrom',
  'migration_type',
  'migration_network',
  'targetstorage',
  'force-cpu',
  'nets-host-mtu',
  'with-conntrack-state',
];

function readPowerRequest(call: Call): PowerRequest {
  const forbidden = ROOT_ONLY_OPTIONS.find((name) => !['', '0'].includes(call.text(name)));
  if (forbidden !== undefined && call.authUser !== ROOT_USER) {
    throw parameterError({ [forbidden]: 'Only root may use this option.' });
  }
  const timeout = call.optional('timeout');
  return {
    host: call.host,
    id: call.integer('vmid'),
    skipLock: call.flag('skiplock'),
    timeoutS: timeout === undefined ? undefined : Number(timeout),
    forceStop: call.flag('forceStop'),
  };
}

type PowerWork = (order: PowerRequest, context: TaskContext) => Promise<void>;

/** For an HA-managed VM, requests the state; the HA manager acts later, in its own task. */
function requestHaState(
  call: Call,
  requestedState: 'started' | 'stopped',
  work: PowerWork,
): string | undefined {
  const id = call.integer('vmid');
  const resource = findHaResource(call, id);
  if (resource === undefined) return undefined;
  const type = requestedState === 'started' ? 'hastart' : 'hastop';
  return call.forkTask({ type, id }, async (context) => {
    context.log(`Requesting HA ${requestedState === 'started' ? 'start' : 'stop'} for VM ${id}`);
    resource.state = requestedState;
    const vm = call.state.vms.get(id);
    const idle = vm === undefined || (vm.running !== undefined) === (requestedState === 'started');
    if (idle) return;
    const type = requestedState === 'started' ? 'qmstart' : 'qmshutdown';
    startTask(call.core, { type, id, host: vm.host, user: ROOT_USER }, async (inner) => {
      await inner.work(HA_POLL_INTERVAL_MS);
      await work({ host: vm.host, id, forceStop: true }, inner);
    });
    await Promise.resolve();
  });
}

function start(call: Call): string {
  const powerRequest = readPowerRequest(call);
  requireQuorum(call.core);
  const work: PowerWork = (request, context) => startVm(call.core, request, context);
  return (
    requestHaState(call, 'started', work) ??
    call.forkTask({ type: 'qmstart', id: powerRequest.id }, (context) =>
      work(powerRequest, context),
    )
  );
}

/** Aborts running shutdowns of the VM that the caller is allowed to abort. */
function abortShutdowns(call: Call, id: number): void {
  for (const task of call.core.tasks.running(call.host)) {
    if (task.type !== 'qmshutdown' || task.id !== String(id)) continue;
    const own = task.user === call.authUser;
    if (own || call.isAllowed({ path: `/nodes/${call.host}`, privileges: ['Sys.Modify'] })) {
      call.core.tasks.stop(task.upid);
    }
  }
}

function stop(call: Call): string {
  const powerRequest = readPowerRequest(call);
  const work: PowerWork = (request, context) => stopVm(call.core, request, context);
  const isManaged = findHaResource(call, powerRequest.id) !== undefined;
  if (isManaged && call.flag('overrule-shutdown')) {
    throw parameterError({ 'overrule-shutdown': 'Not applicable for HA resources.' });
  }
  const managed = requestHaState(call, 'stopped', work);
  if (managed !== undefined) return managed;
  return call.forkTask({ type: 'qmstop', id: powerRequest.id }, async (context) => {
    if (call.flag('overrule-shutdown')) abortShutdowns(call, powerRequest.id);
    await work(powerRequest, context);
  });
}

function checkNotPaused(call: Call, id: number): void {
  const vm = call.state.vms.get(id);
  if (vm?.running?.paused === true && vm.host === call.host && !call.flag('forceStop')) {
    throw serverError('VM is paused - cannot shutdown');
  }
}

function shutdown(call: Call): string {
  const powerRequest = readPowerRequest(call);
  checkNotPaused(call, powerRequest.id);
  const work: PowerWork = (request, context) => shutdownVm(call.core, request, context);
  return (
    requestHaState(call, 'stopped', work) ??
    call.forkTask({ type: 'qmshutdown', id: powerRequest.id }, (context) =>
      work(powerRequest, context),
    )
  );
}

function requireRunning(call: Call, id: number): void {
  const vm = findVm(call.core, call.host, id);
  if (vm.running === undefined) throw serverError(`VM ${id} not running`);
}

function reboot(call: Call): string {
  const powerRequest = readPowerRequest(call);
  checkNotPaused(call, powerRequest.id);
  requireRunning(call, powerRequest.id);
  return call.forkTask({ type: 'qmreboot', id: powerRequest.id }, (context) =>
    rebootVm(call.core, powerRequest, context),
  );
}

function reset(call: Call): string {
  const powerRequest = readPowerRequest(call);
  requireRunning(call, powerRequest.id);
  return call.forkTask({ type: 'qmreset', id: powerRequest.id }, () =>
    resetVm(call.core, powerRequest),
  );
}

function pause(call: Call, paused: boolean): string {
  const powerRequest = readPowerRequest(call);
  requireRunning(call, powerRequest.id);
  if (call.flag('todisk')) throw serverError('suspending to disk is not simulated');
  const type = paused ? 'qmpause' : 'qmresume';
  return call.forkTask({ type, id: powerRequest.id }, () =>
    setPaused(call.core, powerRequest, paused),
  );
}

/** Equivalent to a config change with `delete`. */
async function unlink(call: Call): Promise<null> {
  const { idlist, ...rest } = call.params;
  const params = { ...rest, ...(idlist === undefined ? {} : { delete: idlist }) };
  return await updateVm(call.withParams(params));
}

const CLOUD_INIT_OPTION =
  /^(?:ciuser|cipassword|citype|ciupgrade|cicustom|nameserver|searchdomain|sshkeys|ipconfig\d+)$/;

function listCloudInitOptions(call: Call): unknown {
  const vm = loadVm(call.core, call.host, call.integer('vmid'));
  return Object.entries(vm.config)
    .filter(([key]) => CLOUD_INIT_OPTION.test(key))
    .map(([key, value]) => ({ key, value: formatOptionValue(call.state, key, value) }));
}

function subdirs(...list: readonly string[]): () => unknown {
  return () => list.map((subdir) => ({ subdir }));
}

export const QEMU_HANDLERS: Handlers = {
  'GET /nodes/{node}/qemu': listVms,
  'POST /nodes/{node}/qemu': createVm,
  'GET /nodes/{node}/qemu/{vmid}': subdirs(
    'config',
    'cloudinit',
    'pending',
    'status',
    'unlink',
    'vncproxy',
    'migrate',
    'resize',
    'move',
    'rrd',
    'rrddata',
    'monitor',
    'agent',
    'snapshot',
    'spiceproxy',
    'sendkey',
    'firewall',
    'mtunnel',
    'remote_migrate',
  ),
  'DELETE /nodes/{node}/qemu/{vmid}': destroyVm,
  'GET /nodes/{node}/qemu/{vmid}/config': getConfig,
  'PUT /nodes/{node}/qemu/{vmid}/config': updateVm,
  'POST /nodes/{node}/qemu/{vmid}/config': updateVmInTask,
  'GET /nodes/{node}/qemu/{vmid}/pending': listPending,
  'PUT /nodes/{node}/qemu/{vmid}/unlink': unlink,
  'GET /nodes/{node}/qemu/{vmid}/cloudinit': listCloudInitOptions,
  'GET /nodes/{node}/qemu/{vmid}/status': (call) => {
    loadVm(call.core, call.host, call.integer('vmid'));
    return ['current', 'start', 'stop', 'reset', 'shutdown', 'suspend', 'reboot'].map((subdir) => ({
      subdir,
    }));
  },
  'GET /nodes/{node}/qemu/{vmid}/status/current': currentStatus,
  'POST /nodes/{node}/qemu/{vmid}/status/start': start,
  'POST /nodes/{node}/qemu/{vmid}/status/stop': stop,
  'POST /nodes/{node}/qemu/{vmid}/status/shutdown': shutdown,
  'POST /nodes/{node}/qemu/{vmid}/status/reboot': reboot,
  'POST /nodes/{node}/qemu/{vmid}/status/reset': reset,
  'POST /nodes/{node}/qemu/{vmid}/status/suspend': (call) => pause(call, true),
  'POST /nodes/{node}/qemu/{vmid}/status/resume': (call) => pause(call, false),
  'POST /nodes/{node}/qemu/{vmid}/clone': cloneVm,
  'POST /nodes/{node}/qemu/{vmid}/template': createTemplate,
  'PUT /nodes/{node}/qemu/{vmid}/resize': resizeDisk,
  'POST /nodes/{node}/qemu/{vmid}/move_disk': moveDisk,
  'POST /nodes/{node}/qemu/{vmid}/migrate': migrateVm,
  'GET /nodes/{node}/qemu/{vmid}/snapshot': listSnapshots,
  'POST /nodes/{node}/qemu/{vmid}/snapshot': takeSnapshot,
  'DELETE /nodes/{node}/qemu/{vmid}/snapshot/{snapname}': deleteSnapshot,
  'GET /nodes/{node}/qemu/{vmid}/snapshot/{snapname}': () => [
    { cmd: 'rollback' },
    { cmd: 'config' },
  ],
  'PUT /nodes/{node}/qemu/{vmid}/snapshot/{snapname}/config': updateSnapshot,
  'GET /nodes/{node}/qemu/{vmid}/snapshot/{snapname}/config': snapshotConfig,
  'POST /nodes/{node}/qemu/{vmid}/snapshot/{snapname}/rollback': rollbackSnapshot,
};
