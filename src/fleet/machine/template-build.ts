// SPDX-License-Identifier: Apache-2.0
// A machine that becomes a template. While it boots, its guest reports through the agent what it installs; when that is
// done it is shut down and converted. `joining` stands for these last steps, which begin with a durable record.
import { parseTemplateReport, READ_REPORT } from '../../bootstrap/index.ts';
import { buildPercent } from '../../model/template-progress.ts';
import { PvescalerError, TaskFailed } from '../../ports/errors.ts';
import {
  CONTINUE,
  type MachineReconcile,
  type ReconcileResult,
  requeue,
} from '../context/machine-reconcile.ts';
import { failMachine } from './fail-machine.ts';
import { becomeReady, lookUpOwnVm, startIfStopped } from './own-vm.ts';
import { deleteSeed } from './seed-volume.ts';

const REPORT_POLL_MS = 3_000;
const REPORT_TIMEOUT_MS = 20_000;
const SHUTDOWN_TIMEOUT_MS = 120_000;

/** booting → joining, when the guest has reported that everything is installed and cleaned. */
export async function building(reconcile: MachineReconcile): Promise<ReconcileResult> {
  const report = await readReport(reconcile);
  switch (report?.state) {
    case 'done':
      return reconcile.move('joining');
    case 'failed': {
      const message = `the template could not be built: ${report.step} failed; pvescaler machine show ${reconcile.id} shows the end of its log`;
      await failMachine(reconcile, new TaskFailed('BOOTSTRAP_FAILED', message));
      return CONTINUE;
    }
    case 'building': {
      const { step } = report;
      const percent = buildPercent('booting', report.percent);
      await reconcile.context.recordOnce(`progress of ${reconcile.id}`, {
        kind: 'did',
        subject: { pool: reconcile.machine.pool, machine: reconcile.id },
        reason: 'TemplateProgress',
        message: `${reconcile.placement.name} on ${reconcile.vm.host}: ${percent} %, ${step}`,
        numbers: { percent },
      });
      return requeue(REPORT_POLL_MS, step);
    }
    case undefined:
      return (
        (await startIfStopped(reconcile)) ?? requeue(REPORT_POLL_MS, 'its packages are installed')
      );
  }
}

/** Undefined while the agent does not answer, or the build has not begun. */
async function readReport(reconcile: MachineReconcile) {
  const { hypervisor, vm, context } = reconcile;
  if (!(await hypervisor.guestIsUp(vm, context.readOptions))) return undefined;
  // A VM that got the id meanwhile is another user's.
  await lookUpOwnVm(reconcile);
  const command = { command: READ_REPORT, timeoutMs: REPORT_TIMEOUT_MS };
  try {
    const { exitCode, output } = await hypervisor.guestExec(vm, command, context.writeOptions());
    return exitCode === 0 ? parseTemplateReport(output) : undefined;
  } catch (error) {
    // The agent is restarted while packages are installed.
    if (error instanceof PvescalerError && isAgentBusy(error)) return undefined;
    throw error;
  }
}

function isAgentBusy({ code, class: kind }: PvescalerError): boolean {
  return code === 'GUEST_AGENT_SILENT' || kind === 'TimedOut';
}

/** joining → ready: shut down, without its seed, converted. Each step first checks whether it is done. */
export async function converting(reconcile: MachineReconcile): Promise<ReconcileResult> {
  const task = await reconcile.pollTask();
  if (task.state === 'running') return task.wait;
  const { hypervisor, vm, context, machine } = reconcile;
  const { config } = await lookUpOwnVm(reconcile);
  if (config.isTemplate) return becomeReady(reconcile);
  const { power } = await hypervisor.vmState(vm, context.readOptions);
  if (power === 'running') {
    return reconcile.recordTask(
      await hypervisor.shutdownVm(vm, SHUTDOWN_TIMEOUT_MS, context.writeOptions()),
    );
  }
  if (config.seedVolume !== undefined && config.seedVolume === machine.seedVolume) {
    const { digest } = config;
    await hypervisor.ejectSeed(vm, { digest, ...context.writeOptions() });
    return CONTINUE;
  }
  await deleteSeed(reconcile);
  return reconcile.recordTask(await hypervisor.convertToTemplate(vm, context.writeOptions()));
}
