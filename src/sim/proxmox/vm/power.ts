// SPDX-License-Identifier: Apache-2.0
// Power tasks: they run under the VM's lock; a start has further checks.
import { serverError } from '../api-error.ts';
import { type Core, withVmLock } from '../core.ts';
import type { Vm } from '../state/model.ts';
import {
  findVolume,
  parseVolumeName,
  requireActiveStorage,
  requireStorage,
  splitVolumeId,
} from '../storage/volumes.ts';
import { SIMULATED_DURATIONS_MS, SIMULATED_TIMEOUTS_MS } from '../tasks/durations.ts';
import type { TaskContext } from '../tasks/engine.ts';
import { checkLock, findVm, isTemplate, loadVm } from './config.ts';
import { isCloudInit, parseDrives, parseNics } from './drives.ts';
import { powerOff, powerOn } from './guest-lifecycle.ts';
import { applyPending } from './pending.ts';

export interface PowerRequest {
  readonly host: string;
  readonly id: number;
  readonly skipLock?: boolean;
  readonly timeoutS?: number | undefined;
  readonly forceStop?: boolean;
}

function checkCpus(core: Core, vm: Vm): void {
  const host = core.state.hosts.get(vm.host);
  const cpus = Number(vm.config['cores'] ?? 1) * Number(vm.config['sockets'] ?? 1);
  if (host !== undefined && cpus > host.cpus) {
    throw serverError(`MAX ${host.cpus} vcpus allowed per VM on this node`);
  }
}

function checkBridges(core: Core, vm: Vm): void {
  const host = core.state.hosts.get(vm.host);
  for (const [, nic] of parseNics(vm.config)) {
    const { bridge } = nic.options;
    if (bridge !== undefined && !host?.bridges.some(({ name }) => name === bridge)) {
      throw serverError(`bridge '${bridge}' does not exist`);
    }
  }
}

function warnAboutDrives(vm: Vm, context: TaskContext): void {
  if (vm.config['scsihw'] === 'virtio-scsi-single') return;
  for (const [slot, drive] of parseDrives(vm.config)) {
    if (drive.options['iothread'] !== '1' || !slot.startsWith('scsi')) continue;
    context.warn(
      'iothread is only valid with virtio disk or virtio-scsi-single controller, ignoring',
    );
  }
}

function requireVolume(core: Core, vm: Vm, file: string): void {
  const id = splitVolumeId(file);
  if (id === undefined) return;
  requireActiveStorage(core.state, id.storage, vm.host);
  if (findVolume(core.state, vm.host, file) === undefined) {
    throw serverError(`volume '${file}' does not exist`);
  }
}

function checkSnippets(core: Core, vm: Vm): void {
  if (!parseDrives(vm.config).some(([, drive]) => isCloudInit(drive))) return;
  for (const part of (vm.config['cicustom'] ?? '').split(',')) {
    const file = part.split('=')[1];
    if (file !== undefined) requireVolume(core, vm, file);
  }
}

/** The storage of each drive must allow its content type. */
function checkContents(core: Core, vm: Vm): void {
  for (const [, drive] of parseDrives(vm.config)) {
    const id = splitVolumeId(drive.file);
    if (id === undefined) continue;
    const storage = requireStorage(core.state, id.storage);
    const { content } = parseVolumeName(storage, id.name);
    if (!storage.content.includes(content)) {
      throw serverError(`storage '${id.storage}' does not support content-type '${content}'`);
    }
  }
}

function checkStart(core: Core, vm: Vm): void {
  checkSnippets(core, vm);
  checkCpus(core, vm);
  checkContents(core, vm);
  checkBridges(core, vm);
  for (const [, drive] of parseDrives(vm.config)) requireVolume(core, vm, drive.file);
}

async function startLocked(core: Core, request: PowerRequest, context: TaskContext): Promise<void> {
  const vm = loadVm(core, request.host, request.id);
  if (isTemplate(vm)) throw serverError("you can't start a vm if it's a template");
  // Starting a VM that is suspended to disk resumes it.
  const isSuspended = vm.config['lock'] === 'suspended';
  if (request.skipLock !== true && !isSuspended) checkLock(vm);
  if (vm.running !== undefined) throw serverError(`VM ${vm.id} already running`);
  if (isSuspended) delete vm.config['lock'];
  applyPending(vm);
  checkStart(core, vm);
  warnAboutDrives(vm, context);
  await context.work(SIMULATED_DURATIONS_MS.start);
  powerOn(core, vm, applyPending);
}

export async function startVm(
  core: Core,
  request: PowerRequest,
  context: TaskContext,
): Promise<void> {
  await withVmLock(core, request, () => startLocked(core, request, context));
}

export async function stopVm(
  core: Core,
  request: PowerRequest,
  context: TaskContext,
): Promise<void> {
  await withVmLock(core, request, async () => {
    const vm = findVm(core, request.host, request.id);
    if (vm.running === undefined) return;
    if (request.skipLock !== true) checkLock(vm);
    await context.work(SIMULATED_DURATIONS_MS.stop);
    powerOff(core, vm, applyPending);
  });
}

/** Resolves true when the VM is off, false on timeout. */
async function waitForPowerOff(
  core: Core,
  vm: Vm,
  at: { readonly ms: number; readonly signal: AbortSignal },
): Promise<boolean> {
  const guest = vm.running?.guest;
  if (guest === undefined) return true;
  const off = new AbortController();
  const release = guest.onChange(() => {
    if (vm.running?.guest !== guest) off.abort();
  });
  try {
    await core.state.clock.sleep(at.ms / core.state.speed, {
      signal: AbortSignal.any([off.signal, at.signal]),
    });
  } catch (error) {
    if (at.signal.aborted) throw error;
  } finally {
    release();
  }
  return vm.running?.guest !== guest;
}

async function shutDownLocked(
  core: Core,
  vm: Vm,
  at: { readonly request: PowerRequest; readonly context: TaskContext },
): Promise<void> {
  const { request, context } = at;
  const down = /(?:^|,)down=(\d+)/.exec(vm.config['startup'] ?? '')?.[1];
  const seconds = request.timeoutS ?? (down === undefined ? undefined : Number(down));
  const ms = seconds === undefined ? SIMULATED_TIMEOUTS_MS.shutdown : seconds * 1000;
  // A guest that ignores the request resolves at once; the timeout still applies.
  void vm.running?.guest.requestShutdown();
  if (await waitForPowerOff(core, vm, { ms, signal: context.signal })) return;
  if (request.forceStop !== true) throw serverError('VM quit/powerdown failed - got timeout');
  context.log('VM still running - terminating now with SIGTERM');
  powerOff(core, vm, applyPending);
}

export async function shutdownVm(
  core: Core,
  request: PowerRequest,
  context: TaskContext,
): Promise<void> {
  await withVmLock(core, request, async () => {
    const vm = findVm(core, request.host, request.id);
    if (vm.running === undefined) return;
    if (request.skipLock !== true) checkLock(vm);
    await shutDownLocked(core, vm, { request, context });
  });
}

/** Shuts down, applies pending changes and starts again. */
export async function rebootVm(
  core: Core,
  request: PowerRequest,
  context: TaskContext,
): Promise<void> {
  await withVmLock(core, request, async () => {
    const vm = loadVm(core, request.host, request.id);
    if (vm.running === undefined) return;
    await shutDownLocked(core, vm, { request, context });
    await startLocked(core, request, context);
  });
}

export async function resetVm(core: Core, request: PowerRequest): Promise<void> {
  await withVmLock(core, request, async () => {
    const vm = loadVm(core, request.host, request.id);
    if (request.skipLock !== true) checkLock(vm);
    if (vm.running === undefined) return;
    // Pending changes stay pending: the QEMU process continues, only the guest restarts.
    powerOff(core, vm, () => undefined);
    powerOn(core, vm, applyPending);
    await Promise.resolve();
  });
}

export async function setPaused(core: Core, request: PowerRequest, paused: boolean): Promise<void> {
  await withVmLock(core, request, async () => {
    const vm = loadVm(core, request.host, request.id);
    if (request.skipLock !== true) checkLock(vm);
    if (vm.running === undefined) throw serverError(`VM ${vm.id} not running`);
    vm.running.paused = paused;
    await Promise.resolve();
  });
}
