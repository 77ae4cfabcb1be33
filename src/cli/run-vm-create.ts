// SPDX-License-Identifier: Apache-2.0
import type { PlannedVm, VmsRequest } from '../fleet/index.ts';
import { formatCount } from '../model/format-text.ts';
import type { HostRef, Machine, MachineId } from '../model/machine.ts';
import { Cancelled, NotFound, NotReady } from '../ports/errors.ts';
import type { OpenFleet } from '../setup/index.ts';
import type { ConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { formatTable } from './format-table.ts';
import type { OutputOptions } from './output-option.ts';
import { parseVmOptions, type VmOptions } from './parse-vm-options.ts';
import { failedMachinesError } from './run-pool-scale.ts';
import { runUntilDone } from './run-until-done.ts';
import { loginOf, type Readiness, ReadinessWait } from './vm-readiness.ts';

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
    host.context.out(
      options.output === 'json' ? `${JSON.stringify(planned, null, 2)}\n` : renderPlan(planned),
    );
    return;
  }
  await buildMissingTemplate(host, open, { request, options });
  const creation = new Creation(host, open, request);
  await creation.run();
  const results = creation.results();
  host.context.out(
    options.output === 'json'
      ? `${JSON.stringify(results.map(toJson), null, 2)}\n`
      : renderResults(results),
  );
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
  const question = `${missing.message}. Build template ${from.template} now? [y/N] `;
  const isWanted =
    options.yes === true || /^y(es)?$/i.test((await host.context.adapters.ask(question)) ?? '');
  if (!isWanted) {
    throw new NotFound('TEMPLATE_NOT_FOUND', missing.message, {
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

interface Result {
  readonly machine: Machine;
  readonly readiness: Readiness;
}

class Creation {
  readonly #host: CommandHost;
  readonly #open: OpenFleet;
  readonly #request: VmsRequest;
  readonly #waits = new Map<MachineId, ReadinessWait>();
  readonly #results = new Map<MachineId, Result>();
  readonly #printed = new Map<MachineId, string>();

  constructor(host: CommandHost, open: OpenFleet, request: VmsRequest) {
    this.#host = host;
    this.#open = open;
    this.#request = request;
  }

  /** Resolves when each VM is ready, has failed, or was not ready in time. */
  async run(): Promise<void> {
    const { login, reason } = this.#loginOfSource();
    if (reason !== undefined) this.#host.context.err(`SSH is not checked: ${reason}\n`);
    const { fleet, config } = this.#open;
    const work = runUntilDone(this.#host, this.#open, {
      regions: this.#request.vm.regions ?? Object.keys(config.regions),
      isUnfinished: ({ id }) => this.#waits.has(id),
      submit: async () => {
        const { machines } = await fleet.requestVms(this.#request);
        for (const id of machines) {
          this.#waits.set(id, new ReadinessWait(this.#host, this.#open, login));
        }
      },
      isDone: async () => {
        const { machines } = await fleet.status();
        return this.#observe(machines);
      },
    });
    await work.catch(async (error: unknown) => {
      throw error instanceof Cancelled && this.#waits.size > 0 ? await this.#cancel() : error;
    });
  }

  results(): readonly Result[] {
    return [...this.#results.values()];
  }

  /** A system that boots from the network brings its own logins. */
  #loginOfSource() {
    return this.#request.vm.from.kind === 'netboot' ? {} : loginOf(this.#host, this.#open);
  }

  #observe(machines: readonly Machine[]): boolean {
    for (const machine of machines) {
      const wait = this.#waits.get(machine.id);
      if (wait === undefined || this.#isOver(machine.id)) continue;
      const readiness = wait.observe(machine);
      this.#results.set(machine.id, { machine, readiness });
      this.#print(machine, readiness);
    }
    return [...this.#waits.keys()].every((id) => this.#isOver(id));
  }

  #isOver(id: MachineId): boolean {
    const { readiness, machine } = this.#results.get(id) ?? {};
    if (readiness === undefined || readiness.state === 'waiting') return false;
    // What belongs to a failed VM is removed first.
    return readiness.state !== 'failed' || machine?.phase !== 'deleting';
  }

  #print({ id, placement }: Machine, readiness: Readiness): void {
    const text = readiness.state === 'waiting' ? readiness.waitsFor : undefined;
    if (text === undefined || this.#printed.get(id) === text) return;
    this.#printed.set(id, text);
    this.#host.context.err(`${placement?.name ?? id}: waiting for ${text}\n`);
  }

  /** Says what exists; what does not is cancelled. */
  async #cancel(): Promise<Cancelled> {
    const { fleet } = this.#open;
    const { machines } = await fleet.status();
    const own = machines.filter(({ id }) => this.#waits.has(id));
    const begun = own.filter(({ phase }) => !NOTHING_EXISTS.includes(phase));
    const rest = [...this.#waits.keys()].filter((id) => begun.every((one) => one.id !== id));
    if (rest.length > 0) await fleet.cancelMachines(rest, { by: 'cli', reason: 'interrupted' });
    const exist = begun.map(describeExisting).join(', ');
    const cancelled = `${formatCount(rest.length, 'VM')} did not exist yet and ${rest.length === 1 ? 'is' : 'are'} cancelled`;
    const parts = [exist, rest.length > 0 ? cancelled : ''].filter((part) => part !== '');
    const names = begun.flatMap(({ placement }) => placement?.name ?? []);
    return new Cancelled('CANCELLED', `interrupted: ${parts.join('; ')}`, {
      hint:
        names.length === 0
          ? 'Nothing was created.'
          : `pvescaler vm list shows them; pvescaler vm delete ${names.join(' ')} removes them. What is half made is finished by pvescaler serve or the next command.`,
    });
  }
}

const NOTHING_EXISTS: readonly Machine['phase'][] = ['requested', 'failed', 'gone'];

function describeExisting({ id, phase, placement }: Machine): string {
  const { name = id, vmId = 0, host = '' } = placement ?? {};
  return `${name} is ${phase} (VM ${vmId} on ${host})`;
}

function requireReady(results: readonly Result[]): void {
  const failed = results.flatMap(({ machine, readiness }) =>
    readiness.state === 'failed' ? [machine] : [],
  );
  if (failed.length > 0) throw failedMachinesError(failed, results.length);
  const late = results.flatMap(({ machine, readiness }) =>
    readiness.state === 'not-ready' ? [{ name: nameOf(machine), ...readiness }] : [],
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

function nameOf({ id, placement }: Machine): string {
  return placement?.name ?? id;
}

function addressesOf({ readiness }: Result): readonly string[] {
  return 'addresses' in readiness ? readiness.addresses : [];
}

function toJson(result: Result) {
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

function renderResults(results: readonly Result[]): string {
  const rows = results.map((result) => {
    const { machine, readiness } = result;
    const { placement } = machine;
    return [
      nameOf(machine),
      placement?.host ?? '-',
      placement === undefined ? '-' : String(placement.vmId),
      addressesOf(result).join(',') || '-',
      readiness.state,
    ];
  });
  return formatTable([['NAME', 'NODE', 'VM', 'ADDRESS', 'STATE'], ...rows]);
}

function renderPlan(planned: readonly PlannedVm[]): string {
  const rows = planned.map(({ name, host, vmId, diskStorage, addresses }) => [
    name,
    host,
    String(vmId),
    diskStorage,
    addresses.join(',') || 'dhcp',
  ]);
  return `${formatTable([['NAME', 'NODE', 'VM', 'STORAGE', 'ADDRESS'], ...rows])}nothing was created\n`;
}
