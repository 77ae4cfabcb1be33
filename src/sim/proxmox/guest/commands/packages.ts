// SPDX-License-Identifier: Apache-2.0
import {
  type Call,
  type CommandTable,
  failure,
  OK,
  type Outcome,
  readOptions,
} from '../shell/command.ts';

export const PACKAGE_COMMANDS: CommandTable = { 'apt-get': apt, apt, 'dpkg-query': query };

const NAME = /^[a-z0-9][a-z0-9+.-]*(?::[a-z0-9]+)?(?:=\S+)?$/;

/**
 * Services that their package starts at once. The guest agent's is not among them: its unit is static and
 * waits for the next boot or for somebody to start it.
 */
const STARTED: Readonly<Record<string, string>> = {
  containerd: 'containerd',
  'containerd.io': 'containerd',
  'cri-o': 'crio',
  cron: 'cron',
  'openssh-server': 'ssh',
  chrony: 'chrony',
  'open-iscsi': 'iscsid',
};

function apt(call: Call): Outcome {
  const options = readOptions(call.args, ['o', 'option', 't']);
  const [verb = '', ...names] = options.operands;
  if (verb === 'remove' || verb === 'purge') {
    for (const name of names) call.system.packages.delete(name);
    return OK;
  }
  if (!/^(update|upgrade|dist-upgrade|full-upgrade|install)$/.test(verb)) return OK;
  if (!call.system.network.reachesOut) {
    return failure(
      100,
      'E: Failed to fetch the package lists: Temporary failure in name resolution',
    );
  }
  if (verb !== 'install') return OK;
  const unknown = names.find((name) => !NAME.test(name) && !name.startsWith('/'));
  if (unknown !== undefined) return failure(100, `E: Unable to locate package ${unknown}`);
  for (const name of names) installPackage(call, name.replace(/[:=].*/, ''));
  return OK;
}

function installPackage(call: Call, name: string): void {
  const { system } = call;
  system.packages.add(name);
  const unit = STARTED[name];
  if (unit === undefined) return;
  system.enabledUnits.add(unit);
  system.activeUnits.add(unit);
}

function query(call: Call): Outcome {
  const name = readOptions(call.args, ['f', 'showformat']).operands[0] ?? '';
  const isInstalled = call.system.packages.has(name);
  return isInstalled
    ? { code: 0, out: 'install ok installed\n' }
    : failure(1, `dpkg-query: no packages found matching ${name}`);
}
