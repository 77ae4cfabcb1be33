// SPDX-License-Identifier: Apache-2.0
// The state of one booted operating system: disk content, memory and history. cloud-init/ and commands/ contain the
// behaviour. Each boot creates a new instance from the disk state.
import type {
  DownloadResult,
  GuestCommandRun,
  GuestInput,
  GuestUser,
  JoinAttempt,
} from '../guest-types.ts';
import { type ImageProfile, selectImageProfile } from '../image-profiles.ts';
import { type DiskState, restoreDiskState } from './disk-state.ts';
import { GuestFiles } from './files.ts';
import { GuestNetwork, type NicPlan } from './network.ts';

/** Everything the guest did since its creation, over all boots. Only for reports; the guest does not read it. */
export interface GuestHistory {
  readonly commandsRun: GuestCommandRun[];
  readonly downloads: string[];
  readonly joinAttempts: JoinAttempt[];
  readonly warnings: string[];
  readonly errors: string[];
}

export interface GuestSystemOptions {
  readonly input: GuestInput;
  /** The disk state after the last boot; at the first boot, the state that the VM was created with. */
  readonly disk: unknown;
  readonly history: GuestHistory;
  /** Aborted at power-off. */
  readonly signal: AbortSignal;
  onChange(): void;
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
  isSwapOn: boolean;
  isBootFinished = false;
  /** Set by a command or by cloud-init. */
  powerRequest: 'off' | 'reboot' | undefined;
  boots: number;
  /** Stops the running kubelet; undefined when none was started. */
  kubelet: AbortController | undefined;
  readonly #options: GuestSystemOptions;

  constructor(options: GuestSystemOptions) {
    const { input } = options;
    this.#options = options;
    this.input = input;
    this.history = options.history;
    this.profile = selectImageProfile(input.disk.image);
    const disk = restoreDiskState(options.disk, this.profile);
    this.files = new GuestFiles(disk.tree);
    this.users = new Map(disk.users.map((user) => [user.name, user]));
    this.packages = new Set(disk.packages);
    this.enabledUnits = new Set(disk.enabledUnits);
    this.instanceId = disk.instanceId ?? undefined;
    this.networkPlan = disk.network;
    this.boots = disk.boots;
    this.network = new GuestNetwork(input.interfaces);
    this.hostname = this.files.read('/etc/hostname')?.trim() || this.profile.defaultHostname;
    this.isSwapOn = /^\s*[^#\s]\S*\s+\S+\s+swap\s/m.test(this.files.read('/etc/fstab') ?? '');
  }

  /** The first steps of kernel and init: clears volatile files and creates the machine id. */
  beginBoot(): void {
    this.boots += 1;
    this.files.clearVolatile();
    if (this.files.read('/etc/machine-id')?.trim()) return;
    const id = this.input.random.uuid().replaceAll('-', '');
    this.files.write('/etc/machine-id', `${id}\n`);
  }

  /** Sleeps for a duration given in real time, divided by the guest's speed. Rejects at power-off. */
  async sleepSimulated(realMs: number): Promise<void> {
    const { clock, speed } = this.input;
    await clock.sleep(realMs / speed, { signal: this.#options.signal });
    // A sleep of 0 ms does not check the signal.
    this.#options.signal.throwIfAborted();
  }

  /** Polls until the boot is finished, for `--wait` options. */
  async waitUntilBooted(): Promise<void> {
    while (!this.isBootFinished) await this.sleepSimulated(250);
  }

  /** Aborted at power-off. */
  get signal(): AbortSignal {
    return this.#options.signal;
  }

  get isOff(): boolean {
    return this.signal.aborted;
  }

  now(): number {
    return this.input.clock.now();
  }

  notifyChange(): void {
    this.#options.onChange();
  }

  /** The guest acts on the request at the next change notification. */
  requestPower(request: 'off' | 'reboot'): void {
    this.powerRequest = request;
    this.notifyChange();
  }

  download(url: string): DownloadResult | undefined {
    this.history.downloads.push(url);
    return this.input.download?.(url);
  }

  recordWarning(message: string): void {
    this.history.warnings.push(message);
  }

  recordError(message: string): void {
    this.history.errors.push(message);
  }

  setHostname(name: string): void {
    this.hostname = name;
    this.files.write('/etc/hostname', `${name}\n`);
  }

  toDiskState(): DiskState {
    return {
      version: 1,
      tree: this.files.toState(),
      users: [...this.users.values()],
      packages: [...this.packages].sort(),
      enabledUnits: [...this.enabledUnits].sort(),
      instanceId: this.instanceId ?? null,
      network: this.networkPlan,
      boots: this.boots,
    };
  }
}
