// SPDX-License-Identifier: Apache-2.0
// Progress of a command that waits for machines: what the driver reports, phase changes, and refusals and failures
// from the journal, printed to standard error.
import type { DriverEvents, PassReport } from '../fleet/index.ts';
import { type Drain, formatBlockers, isTerminatingPod } from '../model/drain.ts';
import { formatAge } from '../model/format-text.ts';
import type { Machine } from '../model/machine.ts';
import { describeBuild } from '../model/template-progress.ts';
import type { PvescalerError } from '../ports/errors.ts';
import type { OpenFleet } from '../setup/index.ts';
import type { CommandHost } from './context.ts';
import { findLastError } from './find-last-error.ts';
import { displayName } from './format-machines.ts';

const MAX_NAMED_MACHINES = 3;
const SETTLED: readonly string[] = ['ready', 'kept', 'failed', 'gone'];

export class Progress {
  readonly #host: CommandHost;
  readonly #open: OpenFleet;
  readonly #regions: readonly string[];
  readonly #phases = new Map<string, string>();
  /** What each drain was last seen to wait for. */
  readonly #blockers = new Map<string, string>();
  readonly #startedAt: number;
  #journalSequence: number | undefined;
  #lastLine = '';
  #otherDriver: { readonly holder: string; readonly since: number } | undefined;
  /** Why a region that the command needs cannot be read. Undefined while a read may still succeed. */
  readError: PvescalerError | undefined;
  /** Why nothing was requested yet; undefined before the first pass. */
  waitsFor: string | undefined;
  /** True once the regions were read, by this process or by the one that drives. */
  isSynced = false;
  /** Passes of this process in which the regions were read. */
  syncedPasses = 0;
  /** Passes of this process in which every region was read and every VM's owner was known. */
  completePasses = 0;

  constructor(host: CommandHost, open: OpenFleet, regions: readonly string[]) {
    this.#host = host;
    this.#open = open;
    this.#regions = regions;
    this.#startedAt = host.context.clock.monotonic();
  }

  /** The process that drives instead of this one, and for how long. */
  get otherDriver(): { readonly holder: string; readonly forMs: number } | undefined {
    if (this.#otherDriver === undefined) return undefined;
    const { holder, since } = this.#otherDriver;
    return { holder, forMs: this.#host.context.clock.monotonic() - since };
  }

  readonly events: DriverEvents = {
    onPassBegin: () => {
      this.#otherDriver = undefined;
    },
    onPass: (report) => this.#recordPass(report),
    onWaiting: (holder) => this.#recordOtherDriver(holder),
    onSeparateStore: (holder) =>
      this.#printOnce(
        `${holder} drives this cluster with another state database and does not see requests in this one`,
      ),
    onError: (error) => this.#reportWait(error.message),
  };

  /** Prints changes since the last call, and shows what is in progress. */
  async printChanges(): Promise<void> {
    await this.#printPhases();
    this.#showStatus();
    const isFirst = this.#journalSequence === undefined;
    const entries = await this.#open.store.journal.read({ after: this.#journalSequence ?? 0 });
    this.#journalSequence = entries.at(-1)?.sequence ?? this.#journalSequence ?? 0;
    if (isFirst) return;
    for (const { kind, message } of entries) {
      if (kind === 'refused' || kind === 'failed') this.#print(message);
    }
  }

  #recordPass({ stale, errors, undecided }: PassReport): void {
    const failed = this.#regions.find((region) => errors[region] !== undefined);
    this.readError = failed === undefined ? undefined : errors[failed];
    if (Object.keys(stale).length + undecided.length === 0) this.completePasses += 1;
    const unread = this.#regions.find((region) => stale[region] !== undefined);
    const undecidedRegion = this.#regions.find((region) => undecided.includes(region));
    if (unread !== undefined) {
      // Without an answer the reason only counts seconds.
      const key = errors[unread] === undefined ? `no answer of ${unread}` : undefined;
      this.#reportWait(`cannot read region ${unread}: ${stale[unread]}`, key);
    } else if (undecidedRegion !== undefined) {
      this.#reportWait(
        `region ${undecidedRegion}: waiting for a VM that is being cloned; its owner is not known yet`,
      );
    } else {
      this.waitsFor = undefined;
      this.isSynced = true;
      this.syncedPasses += 1;
    }
  }

  #recordOtherDriver(holder: string): void {
    this.#printOnce(`${holder} drives the fleet; watching`);
    if (this.#otherDriver?.holder !== holder) {
      this.#otherDriver = { holder, since: this.#host.context.clock.monotonic() };
    }
    this.isSynced = true;
  }

  async #printPhases(): Promise<void> {
    const { machines, drains } = await this.#open.fleet.status();
    this.#printBlockers(machines, drains);
    const isFirst = this.#journalSequence === undefined;
    for (const machine of machines) {
      const before = this.#phases.get(machine.id);
      this.#phases.set(machine.id, machine.phase);
      if (before === undefined && (hasEnded(machine) || (isFirst && machine.phase === 'ready')))
        continue;
      if (before === machine.phase) continue;
      // The journal has the error from before this command; it is not repeated there.
      const error = before === undefined ? await findLastError(this.#open, machine) : undefined;
      const suffix = error === undefined ? '' : `; ${error}`;
      const text = describeBuild(machine) ?? `${displayName(machine)}: ${machine.phase}`;
      this.#print(`${text}${suffix}`);
    }
  }

  #showStatus(): void {
    const { clock } = this.#host.context;
    const phases = [...this.#phases.values()].filter((phase) => !SETTLED.includes(phase));
    const counts = [...Map.groupBy(phases, (phase) => phase)].map(
      ([phase, all]) => `${all.length} ${phase}`,
    );
    const what = counts.length === 0 ? 'waiting' : counts.join(', ');
    this.#host.showStatus(`${what}; ${formatAge(clock.monotonic() - this.#startedAt)}`);
  }

  #printBlockers(machines: readonly Machine[], drains: readonly Drain[]): void {
    for (const { machine: id, blockedBy } of drains) {
      const machine = machines.find((one) => one.id === id);
      const text = describeWait(blockedBy);
      if (machine === undefined || (this.#blockers.get(id) ?? '') === text) continue;
      this.#blockers.set(id, text);
      if (text !== '') this.#print(`${displayName(machine)}: waiting for ${text}`);
    }
  }

  #reportWait(reason: string, key?: string): void {
    this.waitsFor = reason;
    this.#printOnce(reason, key);
  }

  #printOnce(line: string, key = line): void {
    if (this.#lastLine === key) return;
    this.#lastLine = key;
    this.#print(line);
  }

  #print(line: string): void {
    this.#host.context.err(`${line}\n`);
  }
}

/** Empty: nothing. Terminating pods are not named: each that ends would be a new line. */
function describeWait(blockedBy: Drain['blockedBy']): string {
  const refused = blockedBy.filter((blocker) => !isTerminatingPod(blocker));
  if (refused.length > 0) return formatBlockers(refused);
  return blockedBy.length > 0 ? 'its pods to end' : '';
}

/** Names the machines, their phases and their last errors, in one sentence. */
export async function describeUnfinished(
  open: Pick<OpenFleet, 'store'>,
  machines: readonly Machine[],
): Promise<string> {
  if (machines.length === 0) return 'no machine is unfinished';
  const named: string[] = [];
  for (const machine of machines.slice(0, MAX_NAMED_MACHINES)) {
    const error = await findLastError(open, machine);
    const suffix = error === undefined ? '' : ` (${error})`;
    named.push(`${displayName(machine)} is ${machine.phase}${suffix}`);
  }
  const more = machines.length - named.length;
  return `${named.join(', ')}${more === 0 ? '' : `, and ${more} more`}`;
}

function hasEnded({ phase }: Machine): boolean {
  return phase === 'gone' || phase === 'failed' || phase === 'kept';
}
