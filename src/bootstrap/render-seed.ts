// SPDX-License-Identifier: Apache-2.0
import type { Labels } from '../model/labels.ts';
import { accepted, type Parsed, refused } from '../model/parsed.ts';
import { extrasProblem, loginProblem, machineProblem, networkProblem } from './check-seed-input.ts';
import { type FirstBoot, planFirstBoot } from './first-boot.ts';
import { formatYaml } from './format-yaml.ts';
import { type GuestFile, JOIN_UNIT, writeFilesEntry } from './guest-file.ts';
import type { SeedFiles } from './iso9660/seed-iso.ts';
import { type CloudConfig, mergeCloudConfig, parseCloudConfig } from './merge-cloud-config.ts';
import { renderAptProxy } from './proxy.ts';
import { buildRegistration, type Registration } from './registration.ts';
import type {
  FamilyInput,
  InterfaceInput,
  LoginInput,
  MachineInput,
  NetworkInput,
  SeedInput,
} from './seed-input.ts';

export interface RenderedSeed {
  readonly metaData: string;
  readonly userData: string;
  readonly networkConfig: string;
  /** To be patched on the Node. The startup taint is removed afterwards. */
  readonly labelsToPatch: Labels;
  /** Empty if the join is in the user-data. */
  readonly agentSteps: readonly AgentStep[];
  readonly registration: Registration;
}

export function renderSeed(input: SeedInput): Parsed<RenderedSeed> {
  const problem = seedInputProblem(input);
  if (problem !== undefined) return refused(problem);
  const registration = buildRegistration(input.machine, input.pool);
  if (!registration.ok) return registration;
  const firstBoot = planFirstBoot(input, registration.value);
  if (!firstBoot.ok) return firstBoot;
  const steps = planAgentSteps(firstBoot.value.filesByAgent);
  if (!steps.ok) return steps;
  const user = renderUserData(input, firstBoot.value);
  if (!user.ok) return user;
  return accepted({
    metaData: renderMetaData(input.machine),
    userData: user.value,
    networkConfig: renderNetworkConfig(input.network),
    labelsToPatch: registration.value.labelsToPatch,
    agentSteps: steps.value,
    registration: registration.value,
  });
}

/** The machine id is the instance id: cloud-init runs again on a disk that was copied to another machine. */
function renderMetaData({ id, name }: MachineInput): string {
  return formatYaml({ 'instance-id': id, 'local-hostname': name });
}

/** The documents by the file names that cloud-init reads. */
export function toSeedFiles({ metaData, userData, networkConfig }: RenderedSeed): SeedFiles {
  return { 'meta-data': metaData, 'user-data': userData, 'network-config': networkConfig };
}

function seedInputProblem({ machine, login, network, join }: SeedInput): string | undefined {
  return (
    machineProblem(machine) ?? loginProblem(login) ?? networkProblem(network) ?? extrasProblem(join)
  );
}

// network-config, version 2. Interfaces are matched by MAC and named eth0, eth1, …: renderers other than
// netplan need a name, and the name that udev would choose is not known here.

export function renderNetworkConfig({ interfaces, dns, search }: NetworkInput): string {
  const ethernets = interfaces.map((each, index) => [
    `eth${index}`,
    {
      match: { macaddress: each.mac.toLowerCase() },
      'set-name': `eth${index}`,
      ...addressing(each),
      ...(index === 0 ? nameServers(dns, search) : {}),
    },
  ]);
  return formatYaml({ version: 2, ethernets: Object.fromEntries(ethernets) });
}

function addressing({ v4, v6, mtu, routes }: InterfaceInput) {
  const addresses = [...addressesOf(v4), ...addressesOf(v6)];
  const wanted = [
    ...defaultRoute(v4, { to: '0.0.0.0/0', alone: '/32' }),
    ...defaultRoute(v6, { to: '::/0', alone: '/128' }),
    ...routes.map(({ to, via }) => ({ to, via })),
  ];
  return {
    dhcp4: v4.kind === 'dhcp',
    dhcp6: v6.kind === 'dhcp',
    'accept-ra': acceptsAdvertisements(v6),
    // Copies of a template share the machine-id and would get the same address by it.
    ...(v4.kind === 'dhcp' && { 'dhcp-identifier': 'mac' }),
    ...(addresses.length > 0 && { addresses }),
    ...(wanted.length > 0 && { routes: wanted }),
    ...(mtu !== undefined && mtu > 1 && { mtu }),
  };
}

/** A second, advertised gateway would compete with the static one. */
function acceptsAdvertisements(v6: FamilyInput): boolean {
  return v6.kind === 'static' ? v6.gateway === undefined : v6.kind !== 'off';
}

function addressesOf(family: FamilyInput): readonly string[] {
  return family.kind === 'static' ? family.addresses : [];
}

/** The target `default` is not supported by older guests; the CIDR of the whole address space is. */
function defaultRoute(family: FamilyInput, { to, alone }: { to: string; alone: string }) {
  if (family.kind !== 'static' || family.gateway === undefined) return [];
  // An address without a subnet reaches its gateway only if the route is marked on-link.
  const isAlone = family.addresses.every((address) => address.endsWith(alone));
  return [{ to, via: family.gateway, ...(isAlone && { 'on-link': true }) }];
}

function nameServers(dns: readonly string[], search: readonly string[]) {
  if (dns.length === 0 && search.length === 0) return {};
  return {
    nameservers: {
      ...(dns.length > 0 && { addresses: dns }),
      ...(search.length > 0 && { search }),
    },
  };
}

/** Keys are in the order in which cloud-init processes them. */
function renderUserData(input: SeedInput, firstBoot: FirstBoot): Parsed<string> {
  const { machine, login, join } = input;
  const { files, packages, filesByAgent, script } = firstBoot;
  const ours: CloudConfig = {
    // cloud-init cuts the name in meta-data at its first dot, and machines of a pool could get the same name. It does not
    // cut one that user-data gives twice.
    ...(machine.name.includes('.') && { hostname: machine.name, fqdn: machine.name }),
    write_files: files.map(writeFilesEntry),
    ...usersOf(login),
    ...renderAptProxy(join.proxy),
    ...(packages.length > 0 && { package_update: true, packages }),
    runcmd: [[script]],
  };
  if (join.cloudConfig === undefined) return accepted(document(ours));
  const theirs = parseCloudConfig(join.cloudConfig);
  if (!theirs.ok) return theirs;
  const taken = filesByAgent.map(({ path }) => path);
  const merged = mergeCloudConfig(ours, theirs.value, taken);
  return merged.ok ? accepted(document(merged.value)) : merged;
}

function document(config: CloudConfig): string {
  return `#cloud-config\n${formatYaml(config)}`;
}

/** Without keys no user is configured: the image's own account stays locked. */
function usersOf({ user, publicKeys }: LoginInput) {
  if (publicKeys.length === 0) return {};
  const keys = publicKeys.map((key) => key.trim());
  if (user === 'root')
    return { disable_root: false, users: [{ name: 'root', ssh_authorized_keys: keys }] };
  return {
    users: [
      {
        name: user,
        sudo: 'ALL=(ALL) NOPASSWD:ALL',
        shell: '/bin/bash',
        lock_passwd: true,
        ssh_authorized_keys: keys,
      },
    ],
  };
}

// The steps of a join through the guest agent, as data. File contents are passed on standard input, never in a
// command line, because every process in the guest and every log can read command lines.

export type AgentStep =
  | {
      readonly kind: 'wait';
      readonly name: string;
      readonly command: readonly string[];
      /** The command is repeated until its trimmed output is one of these. */
      readonly until: readonly string[];
      readonly everyMs: number;
    }
  | {
      readonly kind: 'run';
      readonly name: string;
      readonly command: readonly string[];
      /** Standard input. Must not be logged. */
      readonly input: string | undefined;
    };

/** The limit of Proxmox for `input-data`. */
const MAX_INPUT_BYTES = 64 * 1024;

/** `degraded`: the system is up, but some unit of the image failed, which does not affect the join. */
const WAIT: AgentStep = {
  kind: 'wait',
  name: 'wait for the system to start',
  command: ['systemctl', 'is-system-running'],
  until: ['running', 'degraded'],
  everyMs: 2000,
};

/** The file is never readable by others, not even while it is being written. */
const WRITE = 'mkdir -p "$(dirname "$1")" && umask 077 && cat > "$1" && chmod "$2" "$1"';

/** Without files there are no steps: the machine joins by other means. */
function planAgentSteps(files: readonly GuestFile[]): Parsed<readonly AgentStep[]> {
  if (files.length === 0) return accepted([]);
  const large = files.find(({ content }) => byteLength(content) > MAX_INPUT_BYTES);
  if (large !== undefined) {
    return refused(`file '${large.path}' exceeds the guest agent's limit of 64 KiB`);
  }
  const writes = files.map(
    ({ path, content, mode }): AgentStep => ({
      kind: 'run',
      name: `write ${path}`,
      command: ['/bin/sh', '-c', WRITE, 'write', path, mode],
      input: content,
    }),
  );
  const run = (name: string, ...command: readonly string[]): AgentStep => ({
    kind: 'run',
    name,
    command,
    input: undefined,
  });
  return accepted([
    WAIT,
    ...writes,
    run('reload systemd units', 'systemctl', 'daemon-reload'),
    // Enabled and on disk before the start: a join that a power failure interrupts continues at the next boot.
    run('enable the join', 'systemctl', 'enable', JOIN_UNIT),
    run('write all files to disk', 'sync'),
    // Does not wait for the unit: it retries by itself, and the Node shows when the join is done.
    run('join', 'systemctl', 'start', '--no-block', JOIN_UNIT),
  ]);
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}
