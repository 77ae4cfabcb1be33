// SPDX-License-Identifier: Apache-2.0
// A VM of the simulated Proxmox that is a set of namespaces: it gets the files of its seed and runs the script of the first
// boot, which installs and starts a real k3s agent.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  type Guest,
  type GuestAgent,
  type GuestInput,
  type GuestReport,
  readSeedIso,
  readUserData,
} from '../../src/sim/proxmox/index.ts';
import { killOnExit } from '../e2e/controlplane/reaper.ts';
import { waitUntil } from '../e2e/controlplane/wait-until.ts';

interface SeedFile {
  readonly path: string;
  readonly content: string;
  readonly permissions?: string;
  readonly encoding?: string;
}

/** Called only where the guest agent runs, which it does not here. */
const NO_AGENT = new Proxy({} as GuestAgent, {
  get: () => () => {
    throw new Error('QEMU guest agent is not running');
  },
});

export class K3sGuest implements Guest {
  readonly agent = NO_AGENT;
  readonly isPoweredOff = false;
  readonly folder: string;
  /** The token of the seed. */
  readonly token: string;
  readonly #name: string;
  #process: ChildProcess | undefined;

  constructor({ vmId, seedIso }: GuestInput, folder: string) {
    this.folder = join(folder, String(vmId));
    const { seed } = readSeedIso(seedIso ?? new Uint8Array());
    if (seed === undefined) throw new Error(`VM ${vmId} has no seed`);
    this.#name = String(seed.metaData['local-hostname']);
    const files = readUserData(seed.userData).config['write_files'] as readonly SeedFile[];
    for (const file of files) this.#write(file);
    this.token = this.readFile('/var/lib/pvescaler/join-token');
  }

  start(): void {
    this.#boot('first-boot');
  }

  /** Cuts the power and boots again, without the seed. */
  async reboot(): Promise<void> {
    const ready = this.count('READY');
    this.stop();
    await waitUntil('the guest is off', () => this.#process?.signalCode !== null);
    this.#boot();
    await waitUntil('the agent is ready again', () => this.count('READY') > ready, 120_000);
  }

  stop(): void {
    this.#process?.kill('SIGKILL');
  }

  /** Content of a file that the guest has written, or the empty text. */
  readFile(path: string): string {
    const file = join(this.folder, 'upper', path);
    return existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  }

  log(): string {
    return this.readFile('/var/log/guest.log');
  }

  /** Number of lines of the log that start with the text. */
  count(text: string): number {
    return this.log()
      .split('\n')
      .filter((line) => line.startsWith(text)).length;
  }

  requestShutdown(): Promise<boolean> {
    this.stop();
    return Promise.resolve(true);
  }

  isAgentRunning(): boolean {
    return false;
  }

  diskState(): unknown {
    return undefined;
  }

  report(): GuestReport {
    throw new Error('a real guest has no report');
  }

  onChange(): () => void {
    return () => undefined;
  }

  #boot(...args: readonly string[]): void {
    const namespaces = [
      '--mount',
      '--uts',
      '--pid',
      '--ipc',
      '--fork',
      '--kill-child',
      '--mount-proc',
    ];
    const guest = [
      'python3',
      join(import.meta.dirname, 'guest.py'),
      this.folder,
      this.#name,
      ...args,
    ];
    const child = spawn(
      'nsenter',
      [`--net=${process.env['AGENT_NETWORK']}`, 'unshare', ...namespaces, ...guest],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    );
    killOnExit(child);
    this.#process = child;
  }

  #write({ path, content, permissions = '0644', encoding = '' }: SeedFile): void {
    const target = join(this.folder, 'upper', path);
    mkdirSync(dirname(target), { recursive: true });
    const bytes = Buffer.from(
      content,
      encoding === 'b64' || encoding === 'base64' ? 'base64' : 'utf8',
    );
    writeFileSync(target, bytes, { mode: Number.parseInt(permissions, 8) });
  }
}
