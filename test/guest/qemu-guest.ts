// SPDX-License-Identifier: Apache-2.0
// A VM of the simulated Proxmox that really boots: QEMU without hardware acceleration, with the seed ISO that the product
// uploaded, and the real guest agent behind the simulated API.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Guest, GuestAgent, GuestInput, GuestReport } from '../../src/sim/proxmox/index.ts';
import { killOnExit } from '../e2e/controlplane/reaper.ts';
import { AgentChannel } from './agent-channel.ts';

export interface Image {
  readonly disk: string;
  readonly kernel: string;
  readonly initrd: string;
}

/** Address of the host in the network of a guest, as 10.0.2.2; QEMU forwards both to the host's loopback. */
const HOST_V6 = 'fd00:2::2';

const AGENT_POLL_MS = 1_000;
/** The kernel of Debian 13 panics under TCG with this CPU feature. */
const CPU = 'max,-cx16';

type AgentFacts = Pick<GuestAgent, 'networkGetInterfaces' | 'getHostName' | 'getOsInfo'>;
type AgentAnswers = { -readonly [Name in keyof AgentFacts]?: ReturnType<AgentFacts[Name]> };

export class QemuGuest implements Guest {
  readonly console: string;
  readonly disk: string;
  /** Everything that the product gave to this guest: the seed and the input of agent commands. */
  readonly received: string[] = [];
  readonly agent: GuestAgent;
  isPoweredOff = false;
  readonly #input: GuestInput;
  readonly #image: Image;
  readonly #prefix: string;
  readonly #listeners = new Set<() => void>();
  readonly #runs = new Map<number, ReturnType<GuestAgent['execStatus']>>();
  #answers: AgentAnswers = {};
  #process: ChildProcess | undefined;
  #channel: AgentChannel | undefined;
  #lastPid = 0;

  constructor(input: GuestInput, image: Image, folder: string) {
    const { state } = input.disk as { readonly state: { readonly disk?: string } | undefined };
    const boot = `${input.vmId}-${input.clock.now()}`;
    this.#input = input;
    this.#image = image;
    this.#prefix = join(folder, boot);
    this.console = `${this.#prefix}.console`;
    this.disk = state?.disk ?? `${this.#prefix}.qcow2`;
    if (state?.disk === undefined) createOverlay(image.disk, this.disk);
    this.agent = this.#createAgent();
  }

  start(): void {
    const child = spawn('nice', ['-n', '10', 'qemu-system-x86_64', ...this.#arguments()], {
      stdio: 'ignore',
    });
    killOnExit(child);
    this.#process = child;
    child.once('exit', () => {
      this.#channel?.close();
      this.#answers = {};
      this.isPoweredOff = true;
      this.#notify();
    });
    void this.#pollAgent(child);
  }

  stop(): void {
    this.#process?.kill('SIGKILL');
  }

  async requestShutdown(): Promise<boolean> {
    const monitor = connect(`${this.#prefix}.monitor`);
    monitor.on('error', () => undefined);
    monitor.end('system_powerdown\n');
    while (!this.isPoweredOff) await sleep(AGENT_POLL_MS);
    return true;
  }

  isAgentRunning(): boolean {
    return this.#answers.networkGetInterfaces !== undefined;
  }

  diskState(): unknown {
    return { disk: this.disk };
  }

  /** The simulator reads it only for its own guests. */
  report(): GuestReport {
    throw new Error('a real guest has no report');
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }

  #arguments(): string[] {
    const { vmId, smbiosUuid, cpus, memoryBytes, interfaces, seedIso } = this.#input;
    const { kernel, initrd } = this.#image;
    const options = [
      ['-name', String(vmId)],
      ['-uuid', smbiosUuid],
      ['-accel', 'tcg,thread=multi'],
      ['-cpu', CPU],
      ['-smp', String(cpus)],
      ['-m', `${memoryBytes / 2 ** 20}M`],
      ['-display', 'none'],
      ['-no-reboot'],
      ['-kernel', kernel],
      ['-initrd', initrd],
      ['-append', 'root=/dev/vda rw console=ttyS0'],
      ['-drive', `file=${this.disk},if=virtio,format=qcow2,cache=unsafe`],
      ...(seedIso === undefined ? [] : this.#seedOptions(seedIso)),
      ...interfaces.flatMap(networkOptions),
      ['-serial', `file:${this.console}`],
      ['-monitor', `unix:${this.#prefix}.monitor,server=on,wait=off`],
      ['-chardev', `socket,path=${this.#agentSocket},server=on,wait=off,id=agent`],
      ['-device', 'virtio-serial-pci'],
      ['-device', 'virtserialport,chardev=agent,name=org.qemu.guest_agent.0'],
    ];
    return options.flat();
  }

  get #agentSocket(): string {
    return `${this.#prefix}.agent`;
  }

  #seedOptions(seedIso: Uint8Array): string[][] {
    const file = `${this.#prefix}.iso`;
    writeFileSync(file, seedIso, { mode: 0o600 });
    this.received.push(Buffer.from(seedIso).toString('latin1'));
    return [
      ['-device', 'virtio-scsi-pci'],
      ['-device', 'scsi-cd,drive=seed'],
      ['-drive', `file=${file},if=none,id=seed,format=raw,readonly=on`],
    ];
  }

  /** The simulated API answers at once, so the facts are read in advance. */
  async #pollAgent(child: ChildProcess): Promise<void> {
    while (child.exitCode === null && child.signalCode === null) {
      await sleep(AGENT_POLL_MS);
      try {
        this.#channel ??= await AgentChannel.open(this.#agentSocket);
        const answers: AgentAnswers = {
          networkGetInterfaces: await this.#channel.call('guest-network-get-interfaces'),
          getHostName: await this.#channel.call('guest-get-host-name'),
          getOsInfo: await this.#channel.call('guest-get-osinfo'),
        };
        this.#answers = answers;
      } catch {
        this.#channel?.close();
        this.#channel = undefined;
        this.#answers = {};
      }
      this.#notify();
    }
  }

  #createAgent(): GuestAgent {
    const read = <Name extends keyof AgentFacts>(name: Name) => {
      const answer = this.#answers[name];
      if (answer === undefined) throw new Error('QEMU guest agent is not running');
      return answer as ReturnType<AgentFacts[Name]>;
    };
    const refuse = () => {
      throw new Error('this test has no access to files of a real guest');
    };
    return {
      ping: () => void read('getHostName'),
      networkGetInterfaces: () => read('networkGetInterfaces'),
      getHostName: () => read('getHostName'),
      getOsInfo: () => read('getOsInfo'),
      exec: (command, input) => this.#exec(command, input),
      execStatus: (pid) => {
        const status = this.#runs.get(pid);
        if (status === undefined) throw new Error(`Agent error: PID ${pid} does not exist`);
        if (status.exited === 1) this.#runs.delete(pid);
        return status;
      },
      readFile: refuse,
      writeFile: refuse,
    };
  }

  #exec(command: readonly string[], input?: string): number {
    const channel = this.#channel;
    if (channel === undefined) throw new Error('QEMU guest agent is not running');
    const pid = ++this.#lastPid;
    this.#runs.set(pid, { exited: 0 });
    if (input !== undefined) this.received.push(input);
    const finish = (status: ReturnType<GuestAgent['execStatus']>) => this.#runs.set(pid, status);
    runCommand(channel, command, input).then(finish, (error: Error) =>
      finish({ exited: 1, exitcode: 1, 'err-data': error.message }),
    );
    return pid;
  }
}

function createOverlay(base: string, disk: string): void {
  execFileSync('qemu-img', `create -q -f qcow2 -F qcow2 -b ${base} ${disk}`.split(' '));
}

/** The first card is in the network that leads to the control plane. */
function networkOptions({ slot, mac }: GuestInput['interfaces'][number], index: number) {
  const network =
    index === 0
      ? `ipv6-net=fd00:2::/64,ipv6-host=${HOST_V6}`
      : `restrict=on,net=10.0.${index + 2}.0/24,ipv6-net=fd00:${index + 2}::/64`;
  return [
    ['-netdev', `user,id=${slot},${network}`],
    ['-device', `virtio-net-pci,netdev=${slot},mac=${mac}`],
  ];
}

async function runCommand(channel: AgentChannel, command: readonly string[], input?: string) {
  const [path, ...arg] = command;
  const { pid } = await channel.call<{ pid: number }>('guest-exec', {
    path,
    arg,
    'capture-output': true,
    ...(input !== undefined && { 'input-data': Buffer.from(input).toString('base64') }),
  });
  for (;;) {
    const status = await channel.call<{
      readonly exited: boolean;
      readonly exitcode?: number;
      readonly 'out-data'?: string;
      readonly 'err-data'?: string;
    }>('guest-exec-status', { pid });
    if (status.exited) {
      const text = (name: 'out-data' | 'err-data') =>
        Buffer.from(status[name] ?? '', 'base64').toString();
      return {
        exited: 1 as const,
        exitcode: status.exitcode ?? 1,
        'out-data': text('out-data'),
        'err-data': text('err-data'),
      };
    }
    await sleep(AGENT_POLL_MS);
  }
}
