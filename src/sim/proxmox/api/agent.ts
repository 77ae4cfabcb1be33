// SPDX-License-Identifier: Apache-2.0
// Guest agent endpoints: the three preconditions in Proxmox' order, then the command on the guest.
import { ApiError, serverError } from '../api-error.ts';
import { type Call, type Handlers, withVmLock } from '../core.ts';
import type { Guest } from '../guest/guest.ts';
import { SIMULATED_TIMEOUTS_MS } from '../tasks/durations.ts';
import { checkLock, cpuCount, formatConfig, loadVm } from '../vm/config.ts';
import { decodeSshKeys } from '../vm/ssh-keys.ts';

async function requireGuest(call: Call): Promise<Guest> {
  const vm = loadVm(call.core, call.host, call.integer('vmid'));
  if (vm.config['agent'] === undefined) throw serverError('No QEMU guest agent configured');
  const { running } = vm;
  if (running === undefined) throw serverError(`VM ${vm.id} is not running`);
  if (!running.paused && running.guest.isAgentRunning()) return running.guest;
  await call.state.clock.sleep(SIMULATED_TIMEOUTS_MS.guestAgent / call.state.speed);
  throw serverError('QEMU guest agent is not running');
}

async function runOnGuest(call: Call, command: (guest: Guest) => unknown): Promise<unknown> {
  const guest = await requireGuest(call);
  try {
    return command(guest);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw serverError(error instanceof Error ? error.message : 'Agent error');
  }
}

async function runAndWrapResult(call: Call, command: (guest: Guest) => unknown): Promise<unknown> {
  return { result: await runOnGuest(call, command) };
}

/** Sends each character to the guest as one byte; refuses characters above 0xff. */
function decodeInput(call: Call): string | undefined {
  const input = call.optional('input-data');
  if (input === undefined) return undefined;
  if (/[\u0100-\uffff]/.test(input)) {
    throw serverError(
      'Wide character in subroutine entry at /usr/share/perl5/PVE/QemuServer/Agent.pm',
    );
  }
  return Buffer.from(input, 'latin1').toString('utf8');
}

/** Proxmox counts characters, not bytes: a non-ASCII command is truncated and times out. */
async function requireIntactCommand(call: Call, args: readonly string[]): Promise<void> {
  const text = args.join('');
  if (Buffer.byteLength(text) - text.length <= 1) return;
  await call.state.clock.sleep(SIMULATED_TIMEOUTS_MS.guestCommand / call.state.speed);
  const channel = call.state.version === '8.4' ? 'qmp' : 'qga';
  throw serverError(
    `VM ${call.integer('vmid')} ${channel} command 'guest-exec' failed - got timeout`,
  );
}

async function exec(call: Call): Promise<unknown> {
  const command = call.value('command');
  const args = Array.isArray(command) ? command.map(String) : [call.text('command')];
  const input = decodeInput(call);
  const guest = await requireGuest(call);
  await requireIntactCommand(call, args);
  return await runOnGuest(call, () => ({ pid: guest.agent.exec(args, input) }));
}

/** Output of a command, one character per byte. */
function encodeOutput(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

async function execStatus(call: Call): Promise<unknown> {
  return await runOnGuest(call, (guest) => {
    const status = guest.agent.execStatus(call.integer('pid'));
    const { 'out-data': out, 'err-data': err } = status;
    return {
      ...status,
      ...(out !== undefined && { 'out-data': encodeOutput(out) }),
      ...(err !== undefined && { 'err-data': encodeOutput(err) }),
    };
  });
}

const MAX_READ_BYTES = 16 * 2 ** 20;

/** Both calls answer without the `result` of the other commands; content is one character per byte. */
async function readFile(call: Call): Promise<unknown> {
  return await runOnGuest(call, (guest) => {
    const bytes = Buffer.from(guest.agent.readFile(call.text('file')));
    const from = Number(call.optional('offset') ?? 0);
    const part = bytes.subarray(from, from + Number(call.optional('count') ?? MAX_READ_BYTES));
    const encoding = call.optional('decode') === '0' ? 'base64' : 'latin1';
    const isCut = from + part.length < bytes.length;
    return {
      content: part.toString(encoding),
      'bytes-read': part.length,
      ...(isCut ? { truncated: 1 } : {}),
    };
  });
}

async function writeFile(call: Call): Promise<null> {
  const encoding = call.optional('encode') === '0' ? 'base64' : 'latin1';
  const content = Buffer.from(call.text('content'), encoding);
  await runOnGuest(call, (guest) => guest.agent.writeFile(call.text('file'), content));
  return null;
}

function ping(guest: Guest): unknown {
  guest.agent.ping();
  return {};
}

const INFO = {
  version: '8.2.2',
  supported_commands: [
    'guest-ping',
    'guest-exec',
    'guest-exec-status',
    'guest-network-get-interfaces',
  ].map((name) => ({ name, enabled: true, 'success-response': true })),
};

const AGENT_COMMANDS: Readonly<Record<string, (guest: Guest, call: Call) => unknown>> = {
  ping,
  info: () => INFO,
  'network-get-interfaces': (guest) => guest.agent.networkGetInterfaces(),
  'get-host-name': (guest) => guest.agent.getHostName(),
  'get-osinfo': (guest) => guest.agent.getOsInfo(),
  'get-time': (_guest, call) => call.state.clock.now() * 1_000_000,
  'get-timezone': () => ({ offset: 0, zone: 'UTC' }),
  'get-users': () => [],
  'get-vcpus': (_guest, call) => {
    const config = loadVm(call.core, call.host, call.integer('vmid')).config;
    return Array.from({ length: cpuCount(config) }, (_, index) => ({
      'logical-id': index,
      online: true,
      'can-offline': index > 0,
    }));
  },
  'get-fsinfo': () => [],
  'get-memory-blocks': () => [],
  'get-memory-block-info': () => ({ size: 128 * 2 ** 20 }),
  'fsfreeze-status': () => 'thawed',
  'fsfreeze-freeze': () => 0,
  'fsfreeze-thaw': () => 0,
  fstrim: () => ({ paths: [] }),
  shutdown: (guest) => {
    void guest.requestShutdown();
    return {};
  },
};

async function runAgentCommand(call: Call, name: string): Promise<unknown> {
  const known = AGENT_COMMANDS[name];
  if (known !== undefined) return await runAndWrapResult(call, (guest) => known(guest, call));
  await requireGuest(call);
  throw new ApiError(501, `agent command '${name}' is not simulated\n`);
}

function dumpCloudInit(call: Call): unknown {
  const vm = loadVm(call.core, call.host, call.integer('vmid'));
  const config = formatConfig(call.state, vm, false);
  const name = config['name'] ?? `VM${vm.id}`;
  if (call.text('type') === 'meta') return `instance-id: ${vm.id}\n`;
  if (call.text('type') === 'network') return 'version: 1\nconfig:\n';
  const keys = decodeSshKeys(String(config['sshkeys'] ?? ''))
    .split('\n')
    .filter((line) => line !== '');
  return [
    '#cloud-config',
    `hostname: ${name}`,
    'manage_etc_hosts: true',
    `fqdn: ${name}`,
    ...(config['ciuser'] === undefined ? [] : [`user: ${config['ciuser']}`]),
    ...(keys.length === 0 ? [] : ['ssh_authorized_keys:', ...keys.map((key) => `  - ${key}`)]),
    'chpasswd:',
    '  expire: False',
    `package_upgrade: ${config['ciupgrade'] === 0 ? 'false' : 'true'}`,
    '',
  ].join('\n');
}

const AGENT_PATH = '/nodes/{node}/qemu/{vmid}/agent';

const COMMAND_METHODS: readonly (readonly [string, string])[] = [
  ['POST', 'ping'],
  ['GET', 'info'],
  ['GET', 'network-get-interfaces'],
  ['GET', 'get-host-name'],
  ['GET', 'get-osinfo'],
  ['GET', 'get-time'],
  ['GET', 'get-timezone'],
  ['GET', 'get-users'],
  ['GET', 'get-vcpus'],
  ['GET', 'get-fsinfo'],
  ['GET', 'get-memory-blocks'],
  ['GET', 'get-memory-block-info'],
  ['POST', 'fsfreeze-status'],
  ['POST', 'fsfreeze-freeze'],
  ['POST', 'fsfreeze-thaw'],
  ['POST', 'fstrim'],
  ['POST', 'shutdown'],
  ['POST', 'suspend-disk'],
  ['POST', 'suspend-hybrid'],
  ['POST', 'suspend-ram'],
  ['POST', 'set-user-password'],
];

const COMMAND_HANDLERS: Handlers = Object.fromEntries(
  COMMAND_METHODS.map(([method, name]) => [
    `${method} ${AGENT_PATH}/${name}`,
    (call: Call) => runAgentCommand(call, name),
  ]),
);

async function regenerateCloudInitDrive(call: Call): Promise<null> {
  const id = call.integer('vmid');
  return await withVmLock(call.core, { host: call.host, id }, async () => {
    checkLock(loadVm(call.core, call.host, id));
    await Promise.resolve();
    return null;
  });
}

export const AGENT_HANDLERS: Handlers = {
  ...COMMAND_HANDLERS,
  [`POST ${AGENT_PATH}`]: (call) => runAgentCommand(call, call.text('command')),
  [`GET ${AGENT_PATH}`]: () =>
    [...COMMAND_METHODS.map(([, name]) => name), 'exec', 'exec-status', 'file-read', 'file-write']
      .toSorted()
      .map((name) => ({ name })),
  [`POST ${AGENT_PATH}/exec`]: exec,
  [`GET ${AGENT_PATH}/exec-status`]: execStatus,
  [`GET ${AGENT_PATH}/file-read`]: readFile,
  [`POST ${AGENT_PATH}/file-write`]: writeFile,
  'GET /nodes/{node}/qemu/{vmid}/cloudinit/dump': dumpCloudInit,
  'PUT /nodes/{node}/qemu/{vmid}/cloudinit': regenerateCloudInitDrive,
};
