// SPDX-License-Identifier: Apache-2.0
import {
  type CommandCall,
  type CommandResult,
  type CommandTable,
  failure,
  OK,
  parseOptions,
} from '../shell/command.ts';

export const PACKAGE_COMMANDS: CommandTable = { 'apt-get': apt, apt, 'dpkg-query': queryPackage };

const PACKAGE_NAME = /^[a-z0-9][a-z0-9+.-]*(?::[a-z0-9]+)?(?:=\S+)?$/;

/**
 * Units that start when their package is installed. The guest agent is not among them: its static unit starts at the
 * next boot or by `systemctl start`.
 */
const AUTOSTARTED_UNITS: Readonly<Record<string, string>> = {
  containerd: 'containerd',
  'containerd.io': 'containerd',
  'cri-o': 'crio',
  cron: 'cron',
  'openssh-server': 'ssh',
  chrony: 'chrony',
  'open-iscsi': 'iscsid',
};

function apt(call: CommandCall): CommandResult {
  const options = parseOptions(call.args, ['o', 'option', 't']);
  const [verb = '', ...names] = options.operands;
  if (verb === 'remove' || verb === 'purge') {
    for (const name of names) call.system.packages.delete(name);
    return OK;
  }
  if (!/^(update|upgrade|dist-upgrade|full-upgrade|install)$/.test(verb)) return OK;
  if (!call.system.network.isOnline) {
    return failure(
      100,
      'E: Failed to fetch the package lists: Temporary failure in name resolution',
    );
  }
  if (verb !== 'install') return OK;
  const unknown = names.find((name) => !PACKAGE_NAME.test(name) && !name.startsWith('/'));
  if (unknown !== undefined) return failure(100, `E: Unable to locate package ${unknown}`);
  for (const name of names) installPackage(call, name.replace(/[:=].*/, ''));
  return OK;
}

function installPackage(call: CommandCall, name: string): void {
  const { system } = call;
  system.packages.add(name);
  const unit = AUTOSTARTED_UNITS[name];
  if (unit === undefined) return;
  system.enabledUnits.add(unit);
  system.activeUnits.add(unit);
}

function queryPackage(call: CommandCall): CommandResult {
  const name = parseOptions(call.args, ['f', 'showformat']).operands[0] ?? '';
  const isInstalled = call.system.packages.has(name);
  return isInstalled
    ? { code: 0, out: 'install ok installed\n' }
    : failure(1, `dpkg-query: no packages found matching ${name}`);
}
