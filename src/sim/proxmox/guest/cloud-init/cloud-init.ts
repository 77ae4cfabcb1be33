// SPDX-License-Identifier: Apache-2.0
// cloud-init's four stages over one boot. Owns the order and what runs once per instance, at every boot or not
// at all; reads only what the guest itself could read (its seed and its own files).
import type { GuestShell } from '../commands/guest-shell.ts';
import { isTruthy, listOf, type PlainRecord, recordOf, textOf, textsOf } from '../plain-values.ts';
import type { NicPlan } from '../system/network.ts';
import type { GuestSystem } from '../system/system.ts';
import { warnAboutKeys } from './known-keys.ts';
import { readNetworkConfig } from './network-config.ts';
import { seedFromDrive } from './pve-drive.ts';
import { type Seed, type SeedResult, seedFromIso } from './seed.ts';
import { readUserData, type UserData } from './user-data.ts';
import { makeUsers } from './users.ts';
import { writeFiles } from './write-files.ts';

export const DISABLED_FILE = '/etc/cloud/cloud-init.disabled';
const NOTHING: UserData = { config: {}, scripts: [], bootHooks: [], warnings: [] };
const LOG = '/var/log/cloud-init-output.log';

export class CloudInit {
  readonly #system: GuestSystem;
  readonly #shell: GuestShell;
  #seed: Seed | undefined;
  #userData: UserData | undefined;
  #isNewInstance = false;

  constructor(system: GuestSystem, shell: GuestShell) {
    this.#system = system;
    this.#shell = shell;
  }

  /** Finds the seed and decides the network. Without a seed a disk that was configured stays as it is. */
  local(): void {
    const system = this.#system;
    const isDisabled = system.files.exists(DISABLED_FILE);
    this.#seed = isDisabled ? undefined : this.#findSeed();
    this.#isNewInstance = this.#seed !== undefined && this.#seed.instanceId !== system.instanceId;
    if (this.#seed !== undefined) {
      this.#userData = this.#read(this.#seed);
      system.instanceId = this.#seed.instanceId;
    }
    const isUnconfigured = system.networkPlan.length === 0;
    if (this.#isNewInstance || (isUnconfigured && !isDisabled))
      system.networkPlan = this.#network();
    system.network.configure(system.networkPlan);
  }

  /** After the network is up: commands of every boot, then files, name and accounts of a new instance. */
  async network(): Promise<void> {
    const { config, bootHooks } = this.#userData ?? NOTHING;
    for (const hook of bootHooks) await this.#script('boothook', hook);
    await this.#commands('bootcmd', config['bootcmd']);
    if (!this.#isNewInstance) return;
    warnAboutKeys(this.#system, config);
    writeFiles(this.#system, config['write_files'], false);
    this.#setHostname(config);
    this.#makeSwap(recordOf(config['swap']));
    makeUsers(this.#system, config);
  }

  /** Packages, late files, scripts and commands; then the power, when asked for. */
  async final(): Promise<void> {
    const { config, scripts } = this.#userData ?? NOTHING;
    if (this.#isNewInstance) {
      await this.#packages(config);
      writeFiles(this.#system, config['write_files'], true);
      await this.#commands('runcmd', config['runcmd']);
      for (const script of scripts) await this.#script('user script', script);
    }
    if (this.#seed === undefined) return;
    this.#system.files.makeDirectory('/var/lib/cloud/instance');
    this.#system.files.write('/var/lib/cloud/instance/boot-finished', `${this.#system.now()}\n`);
    if (this.#isNewInstance) await this.#powerState(recordOf(config['power_state']));
  }

  #findSeed(): Seed | undefined {
    const { seedIso, cloudInitDrive, interfaces } = this.#system.input;
    const found: SeedResult =
      seedIso === undefined ? { seed: undefined, problems: [] } : seedFromIso(seedIso);
    for (const problem of found.problems) this.#system.fail(problem);
    if (found.seed !== undefined || cloudInitDrive === undefined) return found.seed;
    return seedFromDrive(cloudInitDrive, interfaces);
  }

  /** The vendor's data counts where the user's says nothing. */
  #read(seed: Seed): UserData {
    const user = readUserData(seed.userData);
    const vendor = readUserData(seed.vendorData);
    for (const warning of [...vendor.warnings, ...user.warnings]) this.#system.warn(warning);
    return {
      config: { ...vendor.config, ...user.config },
      scripts: [...vendor.scripts, ...user.scripts],
      bootHooks: [...vendor.bootHooks, ...user.bootHooks],
      warnings: [],
    };
  }

  #network(): readonly NicPlan[] {
    const { plans, warnings } = readNetworkConfig(this.#seed?.networkConfig);
    for (const warning of warnings) this.#system.warn(warning);
    const [first] = this.#system.input.interfaces;
    if (plans !== undefined || first === undefined) return plans ?? [];
    return [{ mac: first.mac, dhcp4: true, addresses: [], nameservers: [], searchDomains: [] }];
  }

  #setHostname(config: PlainRecord): void {
    if (isTruthy(config['preserve_hostname'])) return;
    const hostname = textOf(config['hostname']);
    const fqdn =
      textOf(config['fqdn']) ?? hostname ?? textOf(this.#seed?.metaData['local-hostname']);
    if (!fqdn) return;
    const short = (hostname ?? fqdn).replace(/\..*/, '');
    this.#system.setHostname(isTruthy(config['prefer_fqdn_over_hostname']) ? fqdn : short);
    if (/^(true|localhost)$/.test(textOf(config['manage_etc_hosts']) ?? '')) {
      const names = fqdn === short ? short : `${fqdn} ${short}`;
      this.#system.files.write('/etc/hosts', `127.0.1.1 ${names}\n127.0.0.1 localhost\n`);
    }
  }

  #makeSwap(swap: PlainRecord): void {
    const size = textOf(swap['size']) ?? '0';
    if (size === '0') return;
    const file = textOf(swap['filename']) ?? '/swap.img';
    this.#system.files.write('/etc/fstab', `${file} none swap sw 0 0\n`, { append: true });
    this.#system.swapOn = true;
  }

  async #packages(config: PlainRecord): Promise<void> {
    const names = listOf(config['packages']).flatMap(packageNames);
    const upgrades = isTruthy(config['package_upgrade']);
    const updates = isTruthy(config['package_update']) || upgrades || names.length > 0;
    if (updates) await this.#program('packages', ['apt-get', 'update']);
    if (upgrades) await this.#program('packages', ['apt-get', 'upgrade', '-y']);
    if (names.length > 0) await this.#program('packages', ['apt-get', 'install', '-y', ...names]);
  }

  /** One script for all entries: a `cd` or a variable holds for the next, a failure does not stop it. */
  async #commands(source: 'bootcmd' | 'runcmd', value: unknown): Promise<void> {
    const entries = listOf(value).map(commandText);
    if (entries.includes(undefined)) {
      this.#system.fail(`${source}: an entry is neither a text nor a list: none was run`);
      return;
    }
    const session = this.#shell.session();
    let code = 0;
    for (const text of entries) {
      if (text === undefined || session.ended) continue;
      const outcome = await session.run(text);
      code = outcome.code;
      this.#note({ source, text, ...outcome });
    }
    if (code !== 0) this.#system.fail(`${source}: the script ended with exit code ${code}`);
  }

  async #script(source: string, text: string): Promise<void> {
    const outcome = await this.#shell.script(text);
    this.#note({ source, text, ...outcome });
    if (outcome.code !== 0) this.#system.fail(`${source}: exit code ${outcome.code}`);
  }

  async #program(source: string, argv: readonly string[]): Promise<void> {
    const outcome = await this.#shell.program(argv);
    this.#note({ source, text: argv.join(' '), ...outcome });
    if (outcome.code !== 0) this.#system.fail(`${source}: ${outcome.err.trim()}`);
  }

  #note(run: { source: string; text: string; code: number; out: string; err: string }): void {
    const { source, text, code } = run;
    this.#system.history.commandsRun.push({ source, text, exitCode: code });
    this.#system.files.write(LOG, run.out + run.err, { append: true, mode: '0640' });
    if (code !== 0) this.#system.warn(`${source}: exit code ${code}: ${text}`);
  }

  async #powerState(wanted: PlainRecord): Promise<void> {
    const mode = textOf(wanted['mode']);
    if (mode === undefined || wanted['condition'] === false) return;
    const minutes = Number(/^\+?(\d+)$/.exec(textOf(wanted['delay']) ?? 'now')?.[1] ?? 0);
    await this.#system.pass(minutes * 60_000);
    this.#system.powerRequest = mode === 'reboot' ? 'reboot' : 'off';
    this.#system.changed();
  }
}

/** A list is one command, word by word; a text is for the shell. */
function commandText(entry: unknown): string | undefined {
  if (!Array.isArray(entry)) return textOf(entry);
  return textsOf(entry)
    .map((word) => `'${word.replaceAll("'", "'\\''")}'`)
    .join(' ');
}

function packageNames(entry: unknown): string[] {
  if (Array.isArray(entry)) return textsOf(entry).slice(0, 1);
  return textsOf(entry);
}
