// SPDX-License-Identifier: Apache-2.0
// One booted operating system: what is on its disk, what is only in its memory, and what it reached outside.
// Holds state; the behaviour is in cloud-init/ and commands/. A new one is made at each boot from the disk.
import type {
  DownloadAnswer,
  GuestCommandRun,
  GuestInput,
  GuestUser,
  JoinAttempt,
} from '../guest-types.ts';
import { type ImageProfile, profileOf } from '../image-profiles.ts';
import { type DiskState, diskStateFrom } from './disk-state.ts';
import { GuestFiles } from './files.ts';
import { GuestNetwork, type NicPlan } from './network.ts';

/** What the guest did since it was created, over all its boots. For reports; the guest itself never reads it. */
export interface GuestHistory {
  readonly commandsRun: GuestCommandRun[];
  readonly downloads: string[];
  readonly joinAttempts: JoinAttempt[];
  readonly warnings: string[];
  readonly errors: string[];
}

export interface SystemOptions {
  readonly input: GuestInput;
  /** What the last boot left; the first one starts from what the VM was created with. */
  readonly disk: unknown;
  readonly history: GuestHistory;
  /** Ends when the power goes. */
  readonly signal: AbortSignal;
  changed(): void;
}

export class GuestSystem {
  readonly profile: ImageProfile;
  readonly files: GuestFiles;
  readonly users: Map<string, GuestUser>;
  readonly packages: Set<string>;
  readonly enabledUnits: Set<string>;
  readonly activeUnits = new Set<string>();
  readonly failedUnits = new Set<string>();
  readonly kernelModules = new Set<string>();
  readonly sysctl = new Map<string, string>();
  readonly network: GuestNetwork;
  readonly history: GuestHistory;
  readonly input: GuestInput;
  instanceId: string | undefined;
  networkPlan: readonly NicPlan[];
  hostname: string;
  swapOn: boolean;
  bootFinished = false;
  /** What a command or cloud-init asked of the power; the guest acts on it when the command has ended. */
  powerRequest: 'off' | 'reboot' | undefined;
  boots: number;
  /** Ends the kubelet that runs on this machine, if one does. */
  kubelet: AbortController | undefined;
  readonly #options: SystemOptions;

  constructor(options: SystemOptions) {
    const { input } = options;
    this.#options = options;
    this.input = input;
    this.history = options.history;
    this.profile = profileOf(input.disk.image);
    const disk = diskStateFrom(options.disk, this.profile);
    this.files = new GuestFiles(disk.tree);
    this.users = new Map(disk.users.map((user) => [user.name, user]));
    this.packages = new Set(disk.packages);
    this.enabledUnits = new Set(disk.enabledUnits);
    this.instanceId = disk.instanceId ?? undefined;
    this.networkPlan = disk.network;
    this.boots = disk.boots;
    this.network = new GuestNetwork(input.interfaces);
    this.hostname = this.files.read('/etc/hostname')?.trim() || this.profile.defaultHostname;
    this.swapOn = /^\s*[^#\s]\S*\s+\S+\s+swap\s/m.test(this.files.read('/etc/fstab') ?? '');
  }

  /** What a kernel and an init do before anything else. */
  beginBoot(): void {
    this.boots += 1;
    this.files.clearVolatile();
    if (this.files.read('/etc/machine-id')?.trim()) return;
    const id = this.input.random.uuid().replaceAll('-', '');
    this.files.write('/etc/machine-id', `${id}\n`);
  }

  /** Rejects when the power goes meanwhile. */
  async pass(realMs: number): Promise<void> {
    const { clock, speed } = this.input;
    await clock.sleep(realMs / speed, { signal: this.#options.signal });
    // A zero wait does not look at the signal.
    this.#options.signal.throwIfAborted();
  }

  /** For `--wait`: looks again now and then, as the real ones do over their bus. */
  async untilBooted(): Promise<void> {
    while (!this.bootFinished) await this.pass(250);
  }

  /** Ends when the power goes. */
  get signal(): AbortSignal {
    return this.#options.signal;
  }

  get isOff(): boolean {
    return this.signal.aborted;
  }

  now(): number {
    return this.input.clock.now();
  }

  changed(): void {
    this.#options.changed();
  }

  download(url: string): DownloadAnswer | undefined {
    this.history.downloads.push(url);
    return this.input.download?.(url);
  }

  warn(message: string): void {
    this.history.warnings.push(message);
  }

  fail(message: string): void {
    this.history.errors.push(message);
  }

  setHostname(name: string): void {
    this.hostname = name;
    this.files.write('/etc/hostname', `${name}\n`);
  }

  state(): DiskState {
    return {
      version: 1,
      tree: this.files.state(),
      users: [...this.users.values()],
      packages: [...this.packages].sort(),
      enabledUnits: [...this.enabledUnits].sort(),
      instanceId: this.instanceId ?? null,
      network: this.networkPlan,
      boots: this.boots,
    };
  }
}
