// SPDX-License-Identifier: Apache-2.0
// Waits until a new VM can be used: its guest agent answers, it has an address, and a login over SSH succeeds. Only this
// process does so: the private key is the person's, not the driver's.
import { addressesOf, type Machine } from '../model/machine.ts';
import { asPvescalerError, PvescalerError } from '../ports/errors.ts';
import type { OpenFleet } from '../setup/index.ts';
import type { CommandHost, SshTarget } from './context.ts';

export type Readiness =
  /** `waitsFor`: what is missing. Absent while the VM does not run yet. */
  | { readonly state: 'waiting'; readonly waitsFor?: string }
  | { readonly state: 'ready'; readonly addresses: readonly string[] }
  | {
      readonly state: 'not-ready';
      readonly waitsFor: string;
      readonly addresses: readonly string[];
    }
  | { readonly state: 'failed' };

type Login = Omit<SshTarget, 'host'>;

/** Undefined: no login is possible or known, with the reason. */
export function loginOf(
  { context }: CommandHost,
  { config }: OpenFleet,
): { readonly login?: Login; readonly reason?: string } {
  const { user, publicKeys, publicKeyPaths, privateKeyPath } = config.ssh;
  if (publicKeys.length + publicKeyPaths.length === 0)
    return { reason: 'ssh.publicKeys of the config is empty, so no login is possible' };
  const hasAgent = (context.environment['SSH_AUTH_SOCK'] ?? '') !== '';
  if (privateKeyPath === undefined && !hasAgent)
    return { reason: 'ssh.privateKeyFile is not set, and there is no SSH agent' };
  return { login: { user, privateKeyPath } };
}

const OVER: readonly Machine['phase'][] = ['failed', 'gone', 'deleting'];
const AGENT = 'the guest agent';
const ADDRESS = 'an address';
const MAX_LOGIN_MS = 15_000;

export class ReadinessWait {
  readonly #host: CommandHost;
  readonly #open: OpenFleet;
  readonly #login: Login | undefined;
  readonly #ended = new AbortController();
  /** Since when its VM runs, on the monotonic clock. */
  #runningSince: number | undefined;
  #waitsFor: string | undefined;
  /** Why the last check failed. */
  #error: string | undefined;
  #checking: Promise<void> | undefined;
  #checkedAt = Number.NEGATIVE_INFINITY;
  #addresses: readonly string[] = [];
  #isReady = false;

  constructor(host: CommandHost, open: OpenFleet, login: Login | undefined) {
    this.#host = host;
    this.#open = open;
    this.#login = login;
  }

  /** Starts a check when one is due, and says what is known. Call it often. */
  observe(machine: Machine): Readiness {
    const { phase } = machine;
    if (OVER.includes(phase)) return { state: 'failed' };
    if (this.#isReady) return { state: 'ready', addresses: this.#addresses };
    if (phase !== 'booting' && phase !== 'ready') return { state: 'waiting' };
    return this.#observeRunning(machine);
  }

  #observeRunning(machine: Machine): Readiness {
    const { clock } = this.#host.context;
    this.#runningSince ??= clock.monotonic();
    const { timeoutMs, sshIntervalMs } = this.#open.config.readiness;
    if (clock.monotonic() - this.#runningSince > timeoutMs) {
      this.#ended.abort();
      return { state: 'not-ready', waitsFor: this.#describe(AGENT), addresses: this.#addresses };
    }
    if (machine.phase === 'booting') this.#waitFor(AGENT);
    else if (clock.monotonic() - this.#checkedAt >= sshIntervalMs) this.#check(machine);
    return { state: 'waiting', waitsFor: this.#describe(ADDRESS) };
  }

  #describe(initial: string): string {
    const waitsFor = this.#waitsFor ?? initial;
    return this.#error === undefined ? waitsFor : `${waitsFor}: ${this.#error}`;
  }

  #check(machine: Machine): void {
    if (this.#checking !== undefined) return;
    this.#checking = this.#checkOnce(machine)
      .catch((error: unknown) => {
        this.#error = asPvescalerError(error).message;
      })
      .finally(() => {
        this.#checking = undefined;
        this.#checkedAt = this.#host.context.clock.monotonic();
      });
  }

  /** Keeps what was reported before until it knows better: each change is printed. */
  async #checkOnce(machine: Machine): Promise<void> {
    this.#addresses = await this.#readAddresses(machine);
    const [first] = this.#addresses.toSorted(compareFamilies);
    if (first === undefined) return this.#waitFor(ADDRESS);
    const [host = first] = first.split('/');
    if (this.#login !== undefined) {
      this.#waitFor(`a login over SSH at ${host}`);
      const signal = AbortSignal.any([this.#host.context.signal, this.#ended.signal]);
      await this.#host.context.adapters.checkSshLogin(
        { ...this.#login, host },
        { timeoutMs: MAX_LOGIN_MS, signal },
      );
    }
    this.#isReady = true;
  }

  #waitFor(what: string): void {
    if (this.#waitsFor !== what) this.#error = undefined;
    this.#waitsFor = what;
  }

  async #readAddresses(machine: Machine): Promise<readonly string[]> {
    const known = addressesOf(machine);
    const { placement } = machine;
    if (known.length > 0 || placement === undefined) return known;
    const hypervisor = this.#open.hypervisors.get(placement.region);
    const interfaces = await hypervisor?.guestInterfaces(placement).catch((error: unknown) => {
      if (error instanceof PvescalerError) return [];
      throw error;
    });
    return (interfaces ?? [])
      .filter(({ name }) => CARD_NAME.test(name))
      .flatMap(({ addresses }) => addresses);
  }
}

/** Names of network cards in Linux guests; others are bridges and tunnels. */
const CARD_NAME = /^e(n|th)/;

/** IPv4 first: it is reachable from more places. */
function compareFamilies(left: string, right: string): number {
  return Number(left.includes(':')) - Number(right.includes(':'));
}
