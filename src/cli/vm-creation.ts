// SPDX-License-Identifier: Apache-2.0
// Creates VMs and waits until they are ready. An interruption cancels those that do not exist yet, and says which exist.
import type { VmsRequest } from '../fleet/index.ts';
import { formatCount } from '../model/format-text.ts';
import type { Machine, MachineId, Phase } from '../model/machine.ts';
import { Cancelled } from '../ports/errors.ts';
import type { OpenFleet } from '../setup/index.ts';
import type { CommandHost } from './context.ts';
import { runUntilDone } from './run-until-done.ts';
import { loginOf, type Readiness, ReadinessWait } from './vm-readiness.ts';

export interface VmResult {
  readonly machine: Machine;
  readonly readiness: Readiness;
}

export class VmCreation {
  readonly #host: CommandHost;
  readonly #open: OpenFleet;
  readonly #request: VmsRequest;
  readonly #waits = new Map<MachineId, ReadinessWait>();
  readonly #results = new Map<MachineId, VmResult>();
  readonly #printed = new Map<MachineId, string>();
  #isCancelRequested = false;

  constructor(host: CommandHost, open: OpenFleet, request: VmsRequest) {
    this.#host = host;
    this.#open = open;
    this.#request = request;
  }

  /** Resolves when each VM is ready, has failed, or was not ready in time. */
  async run(): Promise<readonly VmResult[]> {
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
      cancel: () => this.#cancel(),
    });
    await work.catch(async (error: unknown) => {
      throw error instanceof Cancelled && this.#waits.size > 0 ? await this.#describe() : error;
    });
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

  /** True when the driver has decided for each VM whether it is created. */
  async #cancel(): Promise<boolean> {
    const { undecided } = await this.#readOwn();
    if (undecided.length === 0) return true;
    if (!this.#isCancelRequested) await this.#requestCancel(undecided);
    this.#isCancelRequested = true;
    return false;
  }

  async #requestCancel(ids: readonly MachineId[]): Promise<void> {
    await this.#open.fleet.cancelMachines(ids, { by: 'cli', reason: 'interrupted' });
  }

  async #readOwn() {
    const { machines } = await this.#open.fleet.status();
    const own = machines.filter(({ id }) => this.#waits.has(id));
    const decided = own.filter(({ phase }) => !NOT_BEGUN.includes(phase));
    const ids = new Set(decided.map(({ id }) => id));
    const undecided = [...this.#waits.keys()].filter((id) => !ids.has(id));
    return { begun: decided.filter(({ phase }) => !ENDED.includes(phase)), decided, undecided };
  }

  /** What exists after this process has stopped driving. Another process may drive now. */
  async #describe(): Promise<Cancelled> {
    const { begun, decided, undecided } = await this.#readOwn();
    // A cancellation from before may have met a creation that has been given up since.
    if (undecided.length > 0) await this.#requestCancel(undecided);
    const parts = [
      ...begun.map(describeBegun),
      ...decided.flatMap(describeFailed),
      ...describeCancelled(decided.filter(({ phase }) => phase === 'gone').length),
      ...describeUndecided(undecided.length),
    ];
    const names = begun.flatMap(({ placement }) => placement?.name ?? []);
    return new Cancelled('CANCELLED', `interrupted: ${parts.join('; ')}`, {
      hint:
        names.length === 0
          ? 'pvescaler vm list shows the VMs that exist.'
          : `pvescaler vm list shows them; pvescaler vm delete ${names.join(' ')} removes them. What is half made is finished by pvescaler serve or the next command.`,
    });
  }
}

/** No call that creates the VM was sent. */
const NOT_BEGUN: readonly Phase[] = ['requested', 'placed'];
/** Nothing is left on Proxmox. */
const ENDED: readonly Phase[] = ['failed', 'gone'];

function describeBegun({ id, phase, placement }: Machine): string {
  const { name = id, vmId = 0, host = '' } = placement ?? {};
  // Whether a call that was interrupted had an effect is known when its task is found, or the VM.
  const state = phase === 'creating' ? 'being created, and may not exist yet' : phase;
  return `${name} is ${state} (VM ${vmId} on ${host})`;
}

function describeFailed({ id, phase, placement, failure }: Machine): readonly string[] {
  if (phase !== 'failed') return [];
  return [`${placement?.name ?? id} failed (${failure?.message ?? 'no reason is known'})`];
}

function describeCancelled(count: number): readonly string[] {
  if (count === 0) return [];
  return [
    `${formatCount(count, 'VM')} did not exist yet and ${count === 1 ? 'is' : 'are'} cancelled`,
  ];
}

/** The driver did not decide in time. */
function describeUndecided(count: number): readonly string[] {
  if (count === 0) return [];
  return [
    `${formatCount(count, 'VM')} did not exist yet, and ${count === 1 ? 'its' : 'their'} cancellation is requested`,
  ];
}
