// SPDX-License-Identifier: Apache-2.0
// Programs that read or change the operating system: hostname, kernel, users, power and cloud-init.
import {
  type CommandCall,
  type CommandResult,
  type CommandTable,
  failure,
  OK,
  parseOptions,
} from '../shell/command.ts';
import { loadSysctl, SYSCTL_FILES } from './boot-settings.ts';

export const OS_COMMANDS: CommandTable = {
  hostname: (call) => {
    const [name] = parseOptions(call.args).operands;
    if (parseOptions(call.args).has('I'))
      return { code: 0, out: `${call.system.network.firstAddress ?? ''} \n` };
    if (name === undefined) return { code: 0, out: `${call.system.hostname}\n` };
    call.system.hostname = name;
    return OK;
  },
  hostnamectl: (call) => {
    const [verb, name] = parseOptions(call.args).operands;
    if (name === undefined) return { code: 0, out: `${call.system.hostname}\n` };
    if (verb === 'set-hostname' || verb === 'hostname') call.system.setHostname(name);
    return OK;
  },
  swapoff: (call) => {
    call.system.isSwapOn = false;
    return OK;
  },
  swapon: (call) => {
    if (call.args.some((arg) => /^(--show|-s)/.test(arg))) return OK;
    call.system.isSwapOn = true;
    return OK;
  },
  modprobe: (call) => {
    for (const name of parseOptions(call.args).operands) call.system.kernelModules.add(name);
    return OK;
  },
  lsmod: (call) => ({
    code: 0,
    out: [...call.system.kernelModules].map((name) => `${name}\n`).join(''),
  }),
  sysctl,
  uname: (call) => {
    const { osInfo } = call.system.profile;
    const flags = call.args.join('');
    if (flags.includes('r')) return { code: 0, out: `${osInfo['kernel-release']}\n` };
    return { code: 0, out: flags.includes('m') ? `${osInfo.machine}\n` : 'Linux\n' };
  },
  nproc: (call) => ({ code: 0, out: `${call.system.input.cpus}\n` }),
  dpkg: (call) => ({ code: 0, out: call.args[0] === '--print-architecture' ? 'amd64\n' : '' }),
  id: (call) => {
    const [name] = parseOptions(call.args).operands;
    if (name !== undefined && !call.system.users.has(name))
      return failure(1, `id: '${name}': no such user`);
    return { code: 0, out: parseOptions(call.args).has('u') ? '0\n' : 'uid=0(root) gid=0(root)\n' };
  },
  whoami: () => ({ code: 0, out: 'root\n' }),
  useradd: (call) => {
    const options = parseOptions(call.args, ['s', 'shell', 'G', 'groups', 'd', 'u', 'g', 'c', 'p']);
    const name = options.operands.at(-1) ?? '';
    if (call.system.users.has(name)) return failure(9, `useradd: user '${name}' already exists`);
    call.system.users.set(name, {
      name,
      authorizedKeys: [],
      groups: (options.value('G', 'groups') ?? '').split(',').filter((group) => group !== ''),
      sudo: [],
      shell: options.value('s', 'shell') ?? '/bin/sh',
      lockPassword: true,
    });
    call.system.files.makeDirectory(`/home/${name}`);
    return OK;
  },
  poweroff: (call) => requestPower(call, 'off'),
  halt: (call) => requestPower(call, 'off'),
  reboot: (call) => requestPower(call, 'reboot'),
  shutdown: (call) => {
    if (call.args.includes('-c')) return OK;
    return requestPower(call, call.args.includes('-r') ? 'reboot' : 'off');
  },
  ip: (call) => ({ code: 0, out: `${call.system.network.firstAddress ?? ''}\n` }),
  nc: testNetwork,
  ping: testNetwork,
  getent: testNetwork,
  dmidecode: (call) => ({ code: 0, out: `${call.system.input.smbiosUuid}\n` }),
  'cloud-init': runCloudInit,
};

/** Programs without a simulated effect; they always succeed. */
export const COMMANDS_WITHOUT_EFFECT: readonly string[] = [
  'apt-mark apt-key add-apt-repository update-ca-certificates dpkg-reconfigure locale-gen localectl timedatectl',
  'update-grub update-initramfs growpart resize2fs partprobe udevadm sync netplan networkctl resolvectl ufw',
  'iptables ip6tables nft usermod groupadd passwd chpasswd loginctl logger journalctl systemd-tmpfiles mount umount',
  'mkswap setenforce passwd ldconfig crictl ctr kubectl helm ssh-keygen depmod fstrim',
].flatMap((line) => line.split(' '));

function testNetwork(call: CommandCall): CommandResult {
  return { code: call.system.network.isOnline ? 0 : 1 };
}

function requestPower(call: CommandCall, request: 'off' | 'reboot'): CommandResult {
  call.system.requestPower(request);
  return OK;
}

/** `sysctl -w key=value`, `sysctl key`, `sysctl --system` and `-p file`. */
function sysctl(call: CommandCall): CommandResult {
  const options = parseOptions(call.args, []);
  const { files, sysctl: values } = call.system;
  if (options.has('system', 'p', 'load')) {
    const paths = options.has('system')
      ? files.paths().filter((path) => SYSCTL_FILES.test(path))
      : options.operands.map((path) => call.path(path));
    for (const path of paths) loadSysctl(call.system, path);
    return OK;
  }
  let out = '';
  for (const word of options.operands) {
    const [key = '', value] = word.split('=');
    if (value !== undefined) values.set(key, value);
    else
      out += options.has('n')
        ? `${values.get(key) ?? '0'}\n`
        : `${key} = ${values.get(key) ?? '0'}\n`;
  }
  return { code: 0, out };
}

async function runCloudInit(call: CommandCall): Promise<CommandResult> {
  const { system } = call;
  const options = parseOptions(call.args);
  if (options.operands[0] === 'clean') {
    system.instanceId = undefined;
    system.files.remove('/etc/cloud/cloud-init.disabled');
    if (options.has('machine-id')) system.files.write('/etc/machine-id', '');
    return OK;
  }
  if (options.operands[0] !== 'status') return OK;
  if (options.has('wait')) await system.waitUntilBooted();
  const disabled =
    system.files.exists('/etc/cloud/cloud-init.disabled') && system.instanceId === undefined;
  const status = disabled ? 'disabled' : system.isBootFinished ? 'done' : 'running';
  return { code: 0, out: `status: ${status}\n` };
}
