// SPDX-License-Identifier: Apache-2.0
// The guest agent through the API: its three refusals in their order, then what the guest says.
import { ApiError, failure } from '../api-error.ts';
import type { Call, Handlers } from '../core.ts';
import type { Guest } from '../guest/guest.ts';
import { SIMULATED_TIMEOUTS } from '../tasks/durations.ts';
import { shownConfig, vmOn } from '../vm/config.ts';
import { decodeSshKeys } from '../vm/ssh-keys.ts';

async function guestOf(call: Call): Promise<Guest> {
  const vm = vmOn(call.core, call.host, call.integer('vmid'));
  if (vm.config['agent'] === undefined) throw failure('No QEMU guest agent configured');
  const { running } = vm;
  if (running === undefined) throw failure(`VM ${vm.id} is not running`);
  if (!running.paused && running.guest.agentAnswers()) return running.guest;
  await call.world.clock.sleep(SIMULATED_TIMEOUTS.guestAgent / call.world.speed);
  throw failure('QEMU guest agent is not running');
}

async function ask(call: Call, question: (guest: Guest) => unknown): Promise<unknown> {
  const guest = await guestOf(call);
  try {
    return question(guest);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw failure(error instanceof Error ? error.message : 'Agent error');
  }
}

async function result(call: Call, question: (guest: Guest) => unknown): Promise<unknown> {
  return { result: await ask(call, question) };
}

function exec(call: Call): Promise<unknown> {
  const command = call.value('command');
  const words = Array.isArray(command) ? command.map(String) : [call.text('command')];
  return ask(call, (guest) => ({ pid: guest.agent.exec(words, call.optional('input-data')) }));
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

/** The single entry that dispatches by name; it only knows what is simulated. */
function byName(call: Call): Promise<unknown> {
  const answers: Readonly<Record<string, (guest: Guest) => unknown>> = {
    ping,
    info: () => INFO,
    'network-get-interfaces': (guest) => guest.agent.networkGetInterfaces(),
    'get-host-name': (guest) => guest.agent.getHostName(),
    'get-osinfo': (guest) => guest.agent.getOsInfo(),
  };
  const answer = answers[call.text('command')];
  if (answer === undefined)
    throw failure(`agent command '${call.text('command')}' is not simulated`);
  return result(call, answer);
}

function dump(call: Call): unknown {
  const vm = vmOn(call.core, call.host, call.integer('vmid'));
  const config = shownConfig(call.world, vm, false);
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

export const AGENT: Handlers = {
  [`POST ${AGENT_PATH}`]: byName,
  [`GET ${AGENT_PATH}`]: () =>
    ['exec', 'exec-status', 'info', 'network-get-interfaces', 'ping'].map((name) => ({ name })),
  [`POST ${AGENT_PATH}/ping`]: (call) => result(call, ping),
  [`GET ${AGENT_PATH}/info`]: (call) => result(call, () => INFO),
  [`GET ${AGENT_PATH}/network-get-interfaces`]: (call) =>
    result(call, (guest) => guest.agent.networkGetInterfaces()),
  [`GET ${AGENT_PATH}/get-host-name`]: (call) => result(call, (guest) => guest.agent.getHostName()),
  [`GET ${AGENT_PATH}/get-osinfo`]: (call) => result(call, (guest) => guest.agent.getOsInfo()),
  [`POST ${AGENT_PATH}/exec`]: exec,
  [`GET ${AGENT_PATH}/exec-status`]: (call) =>
    ask(call, (guest) => guest.agent.execStatus(call.integer('pid'))),
  'GET /nodes/{node}/qemu/{vmid}/cloudinit/dump': dump,
  'PUT /nodes/{node}/qemu/{vmid}/cloudinit': (call) => {
    vmOn(call.core, call.host, call.integer('vmid'));
    return null;
  },
};
