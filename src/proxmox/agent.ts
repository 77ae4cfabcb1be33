// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import { InvalidConfig, PvescalerError, TimedOut, Unreachable } from '../ports/errors.ts';
import type { CallOptions, GuestCommand, GuestInterface, VmRef } from '../ports/hypervisor.ts';
import { segment } from './form.ts';
import { type Foreign, flagOf, numberOf, recordOf, recordsOf, textOf } from './json.ts';
import type { Api, ApiCall } from './request.ts';
import type { Whereabouts } from './whereabouts.ts';

const LONGEST_INPUT_BYTES = 65_536;
const FIRST_POLL_MS = 250;
const SLOWEST_POLL_MS = 3_000;

export interface GuestResult {
  readonly exitCode: number;
  readonly output: string;
  readonly errorOutput: string;
}

interface Collaborators {
  readonly api: Api;
  readonly whereabouts: Whereabouts;
  readonly clock: Clock;
}

/** What goes through the guest agent. Each call holds one of the host's few workers while a guest is silent. */
export class GuestAgent {
  readonly #api: Api;
  readonly #whereabouts: Whereabouts;
  readonly #clock: Clock;

  constructor(collaborators: Collaborators) {
    this.#api = collaborators.api;
    this.#whereabouts = collaborators.whereabouts;
    this.#clock = collaborators.clock;
  }

  async isUp(vm: VmRef, options: CallOptions): Promise<boolean> {
    try {
      const call = {
        method: 'POST',
        doing: 'ping',
        repeatable: true,
        waitsForGuest: true,
      } as const;
      await this.#ask(vm, '/ping', { ...call, ...options });
      return true;
    } catch (error) {
      if (isSilent(error)) return false;
      throw error;
    }
  }

  async interfaces(vm: VmRef, options: CallOptions): Promise<readonly GuestInterface[]> {
    const call = { method: 'GET', doing: 'ask for the addresses of', ...options } as const;
    const data = await this.#ask(vm, '/network-get-interfaces', call);
    return recordsOf(recordOf(data)['result'])
      .filter((entry) => entry['name'] !== 'lo')
      .map(interfaceOf);
  }

  async exec(vm: VmRef, command: GuestCommand, options: CallOptions): Promise<GuestResult> {
    refuseUnfit(command);
    const giveUpAt = this.#clock.monotonic() + command.timeoutMs;
    const started = await this.#ask(vm, '/exec', {
      method: 'POST',
      doing: 'run a command in',
      form: { command: command.command, 'input-data': asBytes(command.input) },
      ...options,
    });
    const pid = numberOf(recordOf(started)['pid']) ?? 0;
    let pauseMs = FIRST_POLL_MS;
    for (;;) {
      await this.#clock.sleep(pauseMs, options);
      const status = await this.#status(vm, pid, options);
      if (status !== undefined && flagOf(status['exited'])) return resultOf(status);
      if (this.#clock.monotonic() >= giveUpAt) throw stillRunning(vm, pid);
      pauseMs = Math.min(pauseMs * 1.5, SLOWEST_POLL_MS);
    }
  }

  /** Undefined while nothing can be learnt. */
  async #status(vm: VmRef, pid: number, options: CallOptions): Promise<Foreign | undefined> {
    const call = { method: 'GET', doing: 'wait for a command in', query: { pid } } as const;
    try {
      return recordOf(await this.#ask(vm, '/exec-status', { ...call, ...options }));
    } catch (error) {
      if (isResultTaken(error)) throw resultLost(vm, error);
      if (error instanceof PvescalerError && error.retry === 'backoff') return undefined;
      throw error;
    }
  }

  #ask(vm: VmRef, below: string, call: Omit<ApiCall, 'path' | 'host' | 'facts'>): Promise<unknown> {
    return this.#whereabouts.at(
      vm,
      (host) =>
        this.#api.data({
          ...call,
          path: `/nodes/${segment(host)}/qemu/${vm.vmId}/agent${below}`,
          doing: `${call.doing} the guest of VM ${vm.vmId}`,
          host,
          facts: { vmId: vm.vmId },
        }),
      call.signal,
    );
  }
}

function interfaceOf(entry: Foreign): GuestInterface {
  return {
    name: textOf(entry['name']) ?? '',
    mac: textOf(entry['hardware-address'])?.toLowerCase(),
    addresses: recordsOf(entry['ip-addresses']).flatMap((address) => {
      const text = textOf(address['ip-address']);
      if (text === undefined || isLocalOnly(text)) return [];
      const prefix = numberOf(address['prefix']);
      return [prefix === undefined ? text : `${text}/${prefix}`];
    }),
  };
}

/** Loopback and link-local: of no use to anybody outside the guest. */
function isLocalOnly(address: string): boolean {
  return /^(127\.|169\.254\.|::1$|fe[89ab])/i.test(address);
}

function resultOf(status: Foreign): GuestResult {
  const signal = numberOf(status['signal']);
  return {
    // As a shell says it of a program that a signal ended.
    exitCode: numberOf(status['exitcode']) ?? (signal === undefined ? -1 : 128 + signal),
    output: fromBytes(textOf(status['out-data'])),
    errorOutput: fromBytes(textOf(status['err-data'])),
  };
}

function isSilent(error: unknown): boolean {
  return error instanceof PvescalerError && error.code === 'GUEST_AGENT_SILENT';
}

/** The end of a command can be read once. If that answer was lost, so is the result. */
function isResultTaken(error: unknown): error is PvescalerError {
  return isSilent(error) && error instanceof Error && /Invalid parameter 'pid'/.test(error.message);
}

function resultLost(vm: VmRef, cause: PvescalerError): Unreachable {
  return new Unreachable(
    'GUEST_AGENT_SILENT',
    `the result of a command in VM ${vm.vmId} was lost; it has ended`,
    { cause, facts: { vmId: vm.vmId, requestSent: true } },
  );
}

function stillRunning(vm: VmRef, pid: number): TimedOut {
  return new TimedOut('REQUEST_TIMED_OUT', `a command in VM ${vm.vmId} has not ended in time`, {
    facts: { vmId: vm.vmId, pid, requestSent: true },
  });
}

/** Each character of the input becomes one byte in the guest, so each byte of ours has to be a character. */
function asBytes(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const bytes = new TextEncoder().encode(text);
  return Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
}

/** What a command wrote comes the same way. */
function fromBytes(text: string | undefined): string {
  const codes = Array.from(text ?? '', (character) => character.codePointAt(0) ?? 0);
  // A Proxmox that reads it as text some day: then it is what it should be already.
  if (codes.some((code) => code > 0xff)) return text ?? '';
  return new TextDecoder().decode(Uint8Array.from(codes));
}

function refuseUnfit(command: GuestCommand): void {
  const length = new TextEncoder().encode(command.input ?? '').length;
  if (length > LONGEST_INPUT_BYTES) {
    throw new InvalidConfig(
      'PARAMETER_REFUSED',
      `the input of a guest command has ${length} bytes; Proxmox takes ${LONGEST_INPUT_BYTES}`,
    );
  }
  // Proxmox would cut its end off and wait for an answer in vain.
  if (command.command.some((word) => !/^[\x20-\x7e\s]*$/.test(word))) {
    throw new InvalidConfig('PARAMETER_REFUSED', 'a guest command has words that are not ASCII');
  }
}
