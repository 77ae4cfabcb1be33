// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import { InvalidConfig, PvescalerError, TimedOut, Unreachable } from '../ports/errors.ts';
import type { CallOptions, GuestCommand, GuestInterface, VmRef } from '../ports/hypervisor.ts';
import type { ApiClient, ApiRequest } from './api-client.ts';
import type { VmHosts } from './vm-hosts.ts';
import {
  asBoolean,
  asNumber,
  asObject,
  asObjects,
  asText,
  encodeSegment,
  type JsonObject,
} from './wire-values.ts';

const MAX_INPUT_BYTES = 65_536;
const INITIAL_POLL_INTERVAL_MS = 250;
const MAX_POLL_INTERVAL_MS = 3_000;
/** For the last read, which may begin just before the deadline of the command. */
const MIN_STATUS_TIMEOUT_MS = 1_000;

export interface GuestCommandResult {
  readonly exitCode: number;
  readonly output: string;
  readonly errorOutput: string;
}

interface GuestAgentOptions {
  readonly api: ApiClient;
  readonly vmHosts: VmHosts;
  readonly clock: Clock;
}

/** Calls the QEMU guest agent. A call to a guest that does not respond occupies one of the host's three API workers. */
export class GuestAgent {
  readonly #api: ApiClient;
  readonly #vmHosts: VmHosts;
  readonly #clock: Clock;

  constructor(options: GuestAgentOptions) {
    this.#api = options.api;
    this.#vmHosts = options.vmHosts;
    this.#clock = options.clock;
  }

  async isUp(vm: VmRef, options: CallOptions): Promise<boolean> {
    try {
      const call = {
        method: 'POST',
        operation: 'ping',
        repeatable: true,
        waitsForGuest: true,
      } as const;
      await this.#request(vm, '/ping', { ...call, ...options });
      return true;
    } catch (error) {
      if (isAgentSilent(error)) return false;
      throw error;
    }
  }

  async interfaces(vm: VmRef, options: CallOptions): Promise<readonly GuestInterface[]> {
    const call = {
      method: 'GET',
      operation: 'read the network interfaces of',
      ...options,
    } as const;
    const data = await this.#request(vm, '/network-get-interfaces', call);
    return asObjects(asObject(data)['result'])
      .filter((entry) => entry['name'] !== 'lo')
      .map(parseInterface);
  }

  async exec(vm: VmRef, command: GuestCommand, options: CallOptions): Promise<GuestCommandResult> {
    checkCommand(command);
    const deadline = this.#clock.monotonic() + command.timeoutMs;
    const started = await this.#request(vm, '/exec', {
      method: 'POST',
      operation: 'run a command in',
      form: { command: command.command, 'input-data': encodeInput(command.input) },
      ...options,
    });
    const pid = asNumber(asObject(started)['pid']) ?? 0;
    let pollIntervalMs = INITIAL_POLL_INTERVAL_MS;
    for (;;) {
      await this.#clock.sleep(pollIntervalMs, options);
      const timeoutMs = Math.max(deadline - this.#clock.monotonic(), MIN_STATUS_TIMEOUT_MS);
      const status = await this.#readCommandStatus(vm, { pid, timeoutMs }, options);
      if (status !== undefined && asBoolean(status['exited'])) return parseCommandResult(status);
      if (this.#clock.monotonic() >= deadline) throw commandTimedOut(vm, pid);
      pollIntervalMs = Math.min(pollIntervalMs * 1.5, MAX_POLL_INTERVAL_MS);
    }
  }

  /** Resolves with undefined on a transient error. */
  async #readCommandStatus(
    vm: VmRef,
    { pid, timeoutMs }: { readonly pid: number; readonly timeoutMs: number },
    options: CallOptions,
  ): Promise<JsonObject | undefined> {
    const call = {
      method: 'GET',
      operation: 'read the status of a command in',
      query: { pid },
      timeoutMs,
    } as const;
    try {
      return asObject(await this.#request(vm, '/exec-status', { ...call, ...options }));
    } catch (error) {
      if (isResultAlreadyRead(error)) throw commandResultLost(vm, error);
      if (error instanceof PvescalerError && error.retry === 'backoff') return undefined;
      throw error;
    }
  }

  #request(
    vm: VmRef,
    subpath: string,
    call: Omit<ApiRequest, 'path' | 'host' | 'facts'>,
  ): Promise<unknown> {
    return this.#vmHosts.runOnHost(
      vm,
      (host) =>
        this.#api.requestData({
          ...call,
          path: `/nodes/${encodeSegment(host)}/qemu/${vm.vmId}/agent${subpath}`,
          operation: `${call.operation} the guest of VM ${vm.vmId}`,
          host,
          facts: { vmId: vm.vmId },
        }),
      call.signal,
    );
  }
}

function parseInterface(entry: JsonObject): GuestInterface {
  return {
    name: asText(entry['name']) ?? '',
    mac: asText(entry['hardware-address'])?.toLowerCase(),
    addresses: asObjects(entry['ip-addresses']).flatMap((address) => {
      const text = asText(address['ip-address']);
      if (text === undefined || isLoopbackOrLinkLocal(text)) return [];
      const prefix = asNumber(address['prefix']);
      return [prefix === undefined ? text : `${text}/${prefix}`];
    }),
  };
}

function isLoopbackOrLinkLocal(address: string): boolean {
  return /^(127\.|169\.254\.|::1$|fe[89ab])/i.test(address);
}

function parseCommandResult(status: JsonObject): GuestCommandResult {
  const signal = asNumber(status['signal']);
  return {
    // Like a shell: 128 + signal number.
    exitCode: asNumber(status['exitcode']) ?? (signal === undefined ? -1 : 128 + signal),
    output: decodeOutput(asText(status['out-data'])),
    errorOutput: decodeOutput(asText(status['err-data'])),
  };
}

function isAgentSilent(error: unknown): boolean {
  return error instanceof PvescalerError && error.code === 'GUEST_AGENT_SILENT';
}

/** The agent returns the result of a command once. If that response is lost, the result is lost. */
function isResultAlreadyRead(error: unknown): error is PvescalerError {
  return (
    isAgentSilent(error) && error instanceof Error && /Invalid parameter 'pid'/.test(error.message)
  );
}

function commandResultLost(vm: VmRef, cause: PvescalerError): Unreachable {
  return new Unreachable(
    'GUEST_AGENT_SILENT',
    `run a command in the guest of VM ${vm.vmId}: the command ended, but its result was lost`,
    { cause, facts: { vmId: vm.vmId, requestSent: true } },
  );
}

function commandTimedOut(vm: VmRef, pid: number): TimedOut {
  return new TimedOut(
    'REQUEST_TIMED_OUT',
    `run a command in the guest of VM ${vm.vmId}: no result within the timeout; the command continues to run`,
    {
      facts: { vmId: vm.vmId, pid, requestSent: true },
    },
  );
}

/** Proxmox turns each character of `input-data` into one byte, so each UTF-8 byte is sent as one character. */
function encodeInput(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const bytes = new TextEncoder().encode(text);
  return Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
}

/** The reverse of encodeInput: each character of the output is one byte. */
function decodeOutput(text: string | undefined): string {
  const codes = Array.from(text ?? '', (character) => character.codePointAt(0) ?? 0);
  // Characters above 0xff mean that Proxmox already decoded the output.
  if (codes.some((code) => code > 0xff)) return text ?? '';
  return new TextDecoder().decode(Uint8Array.from(codes));
}

function checkCommand(command: GuestCommand): void {
  const length = new TextEncoder().encode(command.input ?? '').length;
  if (length > MAX_INPUT_BYTES) {
    throw new InvalidConfig(
      'PARAMETER_REFUSED',
      `the input of a guest command has ${length} bytes; Proxmox accepts at most ${MAX_INPUT_BYTES}`,
    );
  }
  // Proxmox would truncate the command and time out.
  if (command.command.some((argument) => !/^[\x20-\x7e\s]*$/.test(argument))) {
    throw new InvalidConfig(
      'PARAMETER_REFUSED',
      'a guest command has a non-ASCII argument; pass such text as input',
    );
  }
}
