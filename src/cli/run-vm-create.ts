// SPDX-License-Identifier: Apache-2.0
import type { PlannedVm, VmsRequest } from '../fleet/index.ts';
import type { HostRef } from '../model/machine.ts';
import { NotFound, NotReady } from '../ports/errors.ts';
import type { OpenFleet } from '../setup/index.ts';
import type { ConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { displayName } from './format-machines.ts';
import type { OutputOptions } from './output-option.ts';
import { parseVmOptions, type VmOptions } from './parse-vm-options.ts';
import { printObjects, type TableFormat } from './print-objects.ts';
import { failedMachinesError } from './run-pool-scale.ts';
import { VmCreation, type VmResult } from './vm-creation.ts';

export interface VmCreateOptions extends ConfigOptions, OutputOptions, VmOptions {
  readonly dryRun?: true;
  /** Builds a missing template without a question. */
  readonly yes?: true;
}

export async function createVms(
  host: CommandHost,
  open: OpenFleet,
  options: VmCreateOptions,
): Promise<void> {
  const hosts = options.host === undefined ? [] : await readHosts(open);
  const request = parseVmOptions(open.config, options, hosts);
  if (options.dryRun === true) {
    const planned = await open.fleet.planVms(request);
    return printObjects(host, options, {
      value: planned,
      names: planned.map(({ name }) => name),
      text: (format) => renderPlan(planned, format),
    });
  }
  await buildMissingTemplate(host, open, { request, options });
  const results = await new VmCreation(host, open, request).run();
  await printObjects(host, options, {
    value: results.map(toJson),
    names: results.map(({ machine }) => displayName(machine)),
    text: (format) => renderResults(results, format),
  });
  requireReady(results);
}

/** Asks first: a build takes minutes. */
async function buildMissingTemplate(
  host: CommandHost,
  open: OpenFleet,
  { request, options }: { readonly request: VmsRequest; readonly options: VmCreateOptions },
): Promise<void> {
  const { from } = request.vm;
  if (from.kind !== 'template' || open.config.templates[from.template]?.image === undefined) return;
  const missing = await open.fleet.planVms(request).then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(missing instanceof NotFound) || missing.code !== 'TEMPLATE_NOT_FOUND') return;
  const where = options.host === undefined ? 'any host that may get the VM' : options.host;
  const message = `there is no template ${from.template} on ${where}`;
  const question = `${message}. Build it now? [y/N] `;
  const isWanted =
    options.yes === true || /^y(es)?$/i.test((await host.context.adapters.ask(question)) ?? '');
  if (!isWanted) {
    throw new NotFound('TEMPLATE_NOT_FOUND', message, {
      hint: `Run pvescaler template build ${from.template} first, or add --yes.`,
    });
  }
  const { buildTemplate } = await import('./run-template.ts');
  await buildTemplate(host, open, { name: from.template, options, kind: 'sync' });
}

async function readHosts({ hypervisors }: OpenFleet): Promise<readonly HostRef[]> {
  const views = await Promise.all([...hypervisors.values()].map((region) => region.view()));
  return views.flatMap(({ region, hosts }) => hosts.map(({ name }) => ({ region, host: name })));
}

function requireReady(results: readonly VmResult[]): void {
  const failed = results.flatMap(({ machine, readiness }) =>
    readiness.state === 'failed' ? [machine] : [],
  );
  if (failed.length > 0) throw failedMachinesError(failed, results.length);
  const late = results.flatMap(({ machine, readiness }) =>
    readiness.state === 'not-ready' ? [{ name: displayName(machine), ...readiness }] : [],
  );
  const [first] = late;
  if (first === undefined) return;
  const names = late.map(({ name }) => name).join(', ');
  const verb = late.length === 1 ? 'was' : 'were';
  throw new NotReady(
    'VM_NOT_READY',
    `${names} ${verb} not ready in time: waited for ${first.waitsFor}`,
    {
      hint: `The VM is kept. Look at it with pvescaler vm console ${first.name} or pvescaler vm show ${first.name}; remove it with pvescaler vm delete ${first.name}. A longer time is set with readiness.timeout.`,
    },
  );
}

function addressesOf({ readiness }: VmResult): readonly string[] {
  return 'addresses' in readiness ? readiness.addresses : [];
}

function toJson(result: VmResult) {
  const { machine, readiness } = result;
  const { placement, failure } = machine;
  return {
    id: machine.id,
    name: placement?.name,
    region: placement?.region,
    host: placement?.host,
    vmId: placement?.vmId,
    addresses: addressesOf(result),
    state: readiness.state,
    ...(failure !== undefined && { failure }),
    ...('waitsFor' in readiness && { waitsFor: readiness.waitsFor }),
  };
}

function renderResults(results: readonly VmResult[], format: TableFormat): string {
  const rows = results.map((result) => {
    const { machine, readiness } = result;
    const { placement } = machine;
    return [
      displayName(machine),
      placement?.host ?? '-',
      placement === undefined ? '-' : String(placement.vmId),
      addressesOf(result).join(',') || '-',
      readiness.state,
    ];
  });
  return format.table(['NAME', 'NODE', 'VM', 'ADDRESS', 'STATE'], rows);
}

function renderPlan(planned: readonly PlannedVm[], format: TableFormat): string {
  const rows = planned.map(({ name, host, vmId, diskStorage, addresses }) => [
    name,
    host,
    String(vmId),
    diskStorage,
    addresses.join(',') || 'dhcp',
  ]);
  return `${format.table(['NAME', 'NODE', 'VM', 'STORAGE', 'ADDRESS'], rows)}nothing was created\n`;
}
