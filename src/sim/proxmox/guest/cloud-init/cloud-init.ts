// SPDX-License-Identifier: Apache-2.0
// The cloud-init stages of one boot. Decides what runs once per instance and what runs at every boot. Reads only what
// a real guest could read: its seed and its own files.
import type { GuestShell } from '../commands/guest-shell.ts';
import type { NicPlan } from '../system/network.ts';
import type { GuestSystem } from '../system/system.ts';
import {
  asList,
  asRecord,
  asText,
  asTexts,
  isTruthy,
  type PlainRecord,
} from '../untyped-values.ts';
import { readNetworkConfig } from './network-config.ts';
import { buildSeedFromDrive } from './pve-drive.ts';
import { readSeedIso, type Seed, type SeedResult } from './seed.ts';
import { findUnknownKeys, readUserData, type UserData } from './user-data.ts';
import { createUsers } from './users.ts';
import { writeFiles } from './write-files.ts';

export const DISABLED_FILE = '/etc/cloud/cloud-init.disabled';
const EMPTY_USER_DATA: UserData = { config: {}, scripts: [], bootHooks: [], warnings: [] };
const OUTPUT_LOG = '/var/log/cloud-init-output.log';

export class CloudInit {
  readonly #system: GuestSystem;
  readonly #shell: GuestShell;
  #seed: Seed | undefined;
  #userData: UserData | undefined;
  #isNewInstance = false;
  /** The names that were last set. */
  #names: HostNames | undefined;

  constructor(system: GuestSystem, shell: GuestShell) {
    this.#system = system;
    this.#shell = shell;
  }

  /** Finds the seed and configures the network. Without a seed, a configured disk keeps its configuration. */
  runLocalStage(): void {
    const system = this.#system;
    const isDisabled = system.files.exists(DISABLED_FILE);
    this.#seed = isDisabled ? undefined : this.#findSeed();
    this.#isNewInstance = this.#seed !== undefined && this.#seed.instanceId !== system.instanceId;
    if (this.#seed !== undefined) {
      this.#userData = this.#readUserData(this.#seed);
      system.instanceId = this.#seed.instanceId;
    }
    // From meta-data alone: user-data is not read yet, also not `preserve_hostname`.
    if (this.#isNewInstance) this.#setHostname({});
    const isUnconfigured = system.networkPlan.length === 0;
    if (this.#isNewInstance || (isUnconfigured && !isDisabled))
      system.networkPlan = this.#readNetworkPlans();
    system.network.configure(system.networkPlan);
  }

  /** After the network is up: boot commands at every boot; files, hostname and users for a new instance. */
  async runNetworkStage(): Promise<void> {
    const { config, bootHooks } = this.#userData ?? EMPTY_USER_DATA;
    for (const hook of bootHooks) await this.#runScript('boothook', hook);
    await this.#runCommands('bootcmd', config['bootcmd']);
    if (!this.#isNewInstance) return;
    for (const key of findUnknownKeys(config)) {
      this.#system.recordWarning(`cloud-config: unknown key '${key}'`);
    }
    writeFiles(this.#system, config['write_files'], false);
    this.#setHostname(config);
    this.#enableSwap(asRecord(config['swap']));
    createUsers(this.#system, config);
  }

  /** Packages, deferred files, commands and scripts for a new instance; then the power state. */
  async runFinalStage(): Promise<void> {
    const { config, scripts } = this.#userData ?? EMPTY_USER_DATA;
    if (this.#isNewInstance) {
      await this.#installPackages(config);
      writeFiles(this.#system, config['write_files'], true);
      await this.#runCommands('runcmd', config['runcmd']);
      for (const script of scripts) await this.#runScript('user script', script);
    }
    if (this.#seed === undefined) return;
    this.#system.files.makeDirectory('/var/lib/cloud/instance');
    this.#system.files.write('/var/lib/cloud/instance/boot-finished', `${this.#system.now()}\n`);
    if (this.#isNewInstance) await this.#applyPowerState(asRecord(config['power_state']));
  }

  #findSeed(): Seed | undefined {
    const { seedIso, cloudInitDrive, interfaces } = this.#system.input;
    const found: SeedResult =
      seedIso === undefined ? { seed: undefined, problems: [] } : readSeedIso(seedIso);
    for (const problem of found.problems) this.#system.recordError(problem);
    if (found.seed !== undefined || cloudInitDrive === undefined) return found.seed;
    return buildSeedFromDrive(cloudInitDrive, interfaces);
  }

  /** User data takes precedence over vendor data. */
  #readUserData(seed: Seed): UserData {
    const user = readUserData(seed.userData);
    const vendor = readUserData(seed.vendorData);
    for (const warning of [...vendor.warnings, ...user.warnings])
      this.#system.recordWarning(warning);
    return {
      config: { ...vendor.config, ...user.config },
      scripts: [...vendor.scripts, ...user.scripts],
      bootHooks: [...vendor.bootHooks, ...user.bootHooks],
      warnings: [],
    };
  }

  #readNetworkPlans(): readonly NicPlan[] {
    const { plans, warnings } = readNetworkConfig(this.#seed?.networkConfig);
    for (const warning of warnings) this.#system.recordWarning(warning);
    const [first] = this.#system.input.interfaces;
    if (plans !== undefined || first === undefined) return plans ?? [];
    return [{ mac: first.mac, dhcp4: true, addresses: [], nameservers: [], searchDomains: [] }];
  }

  /** As the module set_hostname, which does nothing while both names stay the same. */
  #setHostname(config: PlainRecord): void {
    if (isTruthy(config['preserve_hostname'])) return;
    const names = chooseNames(config, asText(this.#seed?.metaData['local-hostname']));
    if (names === undefined) return;
    const { hostname, fqdn } = names;
    if (this.#names?.hostname !== hostname || this.#names.fqdn !== fqdn) {
      this.#system.setHostname(isTruthy(config['prefer_fqdn_over_hostname']) ? fqdn : hostname);
    }
    this.#names = names;
    if (/^(true|localhost)$/.test(asText(config['manage_etc_hosts']) ?? '')) {
      const all = fqdn === hostname ? hostname : `${fqdn} ${hostname}`;
      this.#system.files.write('/etc/hosts', `127.0.1.1 ${all}\n127.0.0.1 localhost\n`);
    }
  }

  #enableSwap(swap: PlainRecord): void {
    const size = asText(swap['size']) ?? '0';
    if (size === '0') return;
    const file = asText(swap['filename']) ?? '/swap.img';
    this.#system.files.write('/etc/fstab', `${file} none swap sw 0 0\n`, { append: true });
    this.#system.isSwapOn = true;
  }

  async #installPackages(config: PlainRecord): Promise<void> {
    const names = asList(config['packages']).flatMap(packageNames);
    const upgrades = isTruthy(config['package_upgrade']);
    const updates = isTruthy(config['package_update']) || upgrades || names.length > 0;
    if (updates) await this.#runProgram('packages', ['apt-get', 'update']);
    if (upgrades) await this.#runProgram('packages', ['apt-get', 'upgrade', '-y']);
    if (names.length > 0)
      await this.#runProgram('packages', ['apt-get', 'install', '-y', ...names]);
  }

  /** All entries run in one shell: `cd` and variables persist, and a failure does not stop the following entries. */
  async #runCommands(source: 'bootcmd' | 'runcmd', value: unknown): Promise<void> {
    const entries = asList(value).map(commandText);
    if (entries.includes(undefined)) {
      this.#system.recordError(
        `${source}: no command was run: an entry is neither a string nor a list`,
      );
      return;
    }
    const session = this.#shell.openSession();
    let code = 0;
    for (const text of entries) {
      if (text === undefined || session.hasExited) continue;
      const result = await session.run(text);
      code = result.code;
      this.#recordRun({ source, text, ...result });
    }
    if (code !== 0) this.#system.recordError(`${source}: the script ended with exit code ${code}`);
  }

  async #runScript(source: string, text: string): Promise<void> {
    const result = await this.#shell.runScript(text);
    this.#recordRun({ source, text, ...result });
    if (result.code !== 0) this.#system.recordError(`${source}: exit code ${result.code}`);
  }

  async #runProgram(source: string, argv: readonly string[]): Promise<void> {
    const result = await this.#shell.runProgram(argv);
    this.#recordRun({ source, text: argv.join(' '), ...result });
    if (result.code !== 0) this.#system.recordError(`${source}: ${result.err.trim()}`);
  }

  #recordRun(run: { source: string; text: string; code: number; out: string; err: string }): void {
    const { source, text, code } = run;
    this.#system.history.commandsRun.push({ source, text, exitCode: code });
    this.#system.files.write(OUTPUT_LOG, run.out + run.err, { append: true, mode: '0640' });
    if (code !== 0) this.#system.recordWarning(`${source}: exit code ${code}: ${text}`);
  }

  async #applyPowerState(powerState: PlainRecord): Promise<void> {
    const mode = asText(powerState['mode']);
    if (mode === undefined || powerState['condition'] === false) return;
    const minutes = Number(/^\+?(\d+)$/.exec(asText(powerState['delay']) ?? 'now')?.[1] ?? 0);
    await this.#system.sleepSimulated(minutes * 60_000);
    this.#system.requestPower(mode === 'reboot' ? 'reboot' : 'off');
  }
}

interface HostNames {
  readonly hostname: string;
  readonly fqdn: string;
}

/** As `get_hostname_fqdn` of cloud-init. */
function chooseNames(config: PlainRecord, fromMetaData: string | undefined): HostNames | undefined {
  const [hostname, given] = [asText(config['hostname']), asText(config['fqdn'])];
  const fqdn = given ?? hostname ?? fromMetaData;
  if (!fqdn) return undefined;
  const short = fqdn.replace(/\..*/, '');
  return { hostname: given === undefined ? short : (hostname ?? short), fqdn };
}

/** A list is one command with quoted arguments; a string is shell text. */
function commandText(entry: unknown): string | undefined {
  if (!Array.isArray(entry)) return asText(entry);
  return asTexts(entry)
    .map((word) => `'${word.replaceAll("'", "'\\''")}'`)
    .join(' ');
}

function packageNames(entry: unknown): string[] {
  if (Array.isArray(entry)) return asTexts(entry).slice(0, 1);
  return asTexts(entry);
}
