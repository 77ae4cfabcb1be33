// SPDX-License-Identifier: Apache-2.0
import type { VmDecision } from '../fleet/index.ts';
import { isVmIntent } from '../model/intent.ts';
import { isErrorCode } from '../ports/error-codes.ts';
import { deserializeError, InvalidRequest } from '../ports/errors.ts';
import type { OpenFleet } from '../setup/index.ts';
import type { ConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import type { OutputOptions } from './output-option.ts';
import { printObjects, type TableFormat } from './print-objects.ts';
import { runUntilDone } from './run-until-done.ts';
import { parseTimeoutMs, type TimeoutOptions } from './timeout-option.ts';

export interface DecideOptions extends ConfigOptions, TimeoutOptions, OutputOptions {
  readonly region?: string;
  readonly pool?: string;
  readonly yes?: true;
}

interface Decision {
  readonly kind: Exclude<VmDecision['kind'], 'destroy'>;
  readonly vmId: string;
  readonly options: DecideOptions;
}

export async function decide(
  host: CommandHost,
  open: OpenFleet,
  { kind, vmId, options }: Decision,
): Promise<void> {
  const { region, pool, yes = false } = options;
  const plan = await open.fleet.planVmDecision({ kind, vmId: parseVmId(vmId), region, pool });
  if (yes) await carryOutDecision(host, open, { plan, timeoutMs: parseTimeoutMs(options) });
  await printObjects(host, options, {
    value: toValue(plan, yes),
    names: [String(plan.vm.vmId)],
    text: (format) => render(plan, yes, format),
  });
}

interface PlannedDecision {
  readonly plan: VmDecision;
  readonly timeoutMs: number | undefined;
}

/** Resolves when the driver has done it. */
export async function carryOutDecision(
  host: CommandHost,
  open: OpenFleet,
  { plan, timeoutMs }: PlannedDecision,
): Promise<void> {
  let id: string | undefined;
  const find = async () => {
    const intents = await open.store.intents.list();
    return intents.map(({ value }) => value).find((intent) => intent.id === id);
  };
  await runUntilDone(host, open, {
    regions: [plan.region],
    timeoutMs,
    isUnfinished: () => false,
    submit: async () => {
      id = await open.fleet.requestVmDecision(plan);
    },
    isDone: async () => (await find())?.state !== 'open',
  });
  const intent = await find();
  if (intent === undefined || !isVmIntent(intent) || intent.failure === undefined) return;
  const { code, message } = intent.failure;
  throw deserializeError({
    code: isErrorCode(code) ? code : 'TASK_FAILED',
    message,
    hint:
      plan.kind === 'destroy'
        ? 'Run the command again.'
        : 'Nothing was changed. Run the command again.',
    facts: {},
  });
}

function toValue({ kind, region, pool, vm }: VmDecision, isDone: boolean) {
  const { vmId, host, name, tags, smbiosUuid } = vm;
  return { kind, region, vmId, host, name, tags, smbiosUuid, pool, done: isDone };
}

function render(
  { kind, region, pool, vm }: VmDecision,
  isDone: boolean,
  format: TableFormat,
): string {
  const rows = [
    ['vm', `${region}/${vm.vmId}`],
    ['name', vm.name ?? ''],
    ['host', vm.host],
    ['tags', vm.tags.join(', ')],
    ['smbios uuid', vm.smbiosUuid ?? ''],
    ['notes', (vm.description ?? '').split('\n').join(' | ')],
  ];
  return `${format.fields(rows)}${outcome(kind, { vmId: vm.vmId, pool, isDone })}\n`;
}

interface Outcome {
  readonly vmId: number;
  readonly pool: string;
  readonly isDone: boolean;
}

function outcome(kind: VmDecision['kind'], { vmId, pool, isDone }: Outcome): string {
  if (!isDone) return `nothing was changed; add --yes to ${kind} VM ${vmId}`;
  return kind === 'adopt'
    ? `VM ${vmId} is a machine of pool ${pool}`
    : `VM ${vmId} is forgotten: pvescaler never changes it`;
}

function parseVmId(text: string): number {
  if (/^[1-9]\d{2,8}$/.test(text)) return Number(text);
  throw new InvalidRequest('USAGE', `'${text}' is not a VM id`);
}
