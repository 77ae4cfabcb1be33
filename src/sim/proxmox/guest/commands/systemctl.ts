// SPDX-License-Identifier: Apache-2.0
// `systemctl` and `service`, with the verbs that a first boot uses.
import {
  type CommandCall,
  type CommandResult,
  type CommandTable,
  failure,
  OK,
  parseOptions,
} from '../shell/command.ts';
import {
  ifUnitExists,
  isAlwaysActive,
  readUnitFile,
  startUnit,
  stopUnit,
  type UnitCall,
} from './units.ts';

export const SYSTEMD_COMMANDS: CommandTable = {
  systemctl: (call) => systemctl(call, call.args),
  service: (call) => systemctl(call, call.args.slice(0, 2).toReversed()),
};

const POWER_VERBS: ReadonlyMap<string, 'off' | 'reboot'> = new Map([
  ['reboot', 'reboot'],
  ['poweroff', 'off'],
  ['halt', 'off'],
]);

const VERBS_WITHOUT_EFFECT = new Set(
  'daemon-reload daemon-reexec reset-failed status show list-units preset set-property'.split(' '),
);

async function systemctl(call: CommandCall, args: readonly string[]): Promise<CommandResult> {
  const options = parseOptions(args, ['t', 'type', 'n', 'p', 'property']);
  const [verb = '', ...names] = options.operands;
  if (verb === 'is-system-running') return reportSystemState(call, options.has('wait'));
  const powerRequest = POWER_VERBS.get(verb);
  if (powerRequest !== undefined) {
    call.system.requestPower(powerRequest);
    return OK;
  }
  const act = Object.hasOwn(UNIT_VERBS, verb) ? UNIT_VERBS[verb] : undefined;
  if (act === undefined) {
    return VERBS_WITHOUT_EFFECT.has(verb) ? OK : failure(1, `Unknown command verb '${verb}'.`);
  }
  const verbs = [act, ...(options.has('now') ? [verb === 'enable' ? startUnit : stopUnit] : [])];
  const total = await applyToUnits(call, names, verbs);
  return options.has('q', 'quiet') ? { code: total.code } : total;
}

/** Applies the verbs to all units; returns the exit code of the first failure. */
async function applyToUnits(
  call: CommandCall,
  names: readonly string[],
  verbs: readonly UnitVerb[],
): Promise<CommandResult> {
  const total = { code: 0, out: '', err: '' };
  for (const name of names) {
    const unit = name.replace(/\.service$/, '');
    for (const act of verbs) {
      const result = await act({ unit, system: call.system, runner: call.runner });
      total.out += result.out ?? '';
      total.err += result.err ?? '';
      total.code ||= result.code;
      if (result.code !== 0) break;
    }
  }
  return total;
}

async function reportSystemState({ system }: CommandCall, waits: boolean): Promise<CommandResult> {
  if (waits) await system.waitUntilBooted();
  if (!system.isBootFinished) return { code: 1, out: 'starting\n' };
  return system.failedUnits.size > 0
    ? { code: 1, out: 'degraded\n' }
    : { code: 0, out: 'running\n' };
}

type UnitVerb = (call: UnitCall) => CommandResult | Promise<CommandResult>;

const UNIT_VERBS: Readonly<Record<string, UnitVerb>> = {
  start: startUnit,
  restart: startUnit,
  reload: (call) => ifUnitExists(call, () => OK),
  'try-restart': (call) => (call.system.activeUnits.has(call.unit) ? startUnit(call) : OK),
  'reload-or-restart': startUnit,
  stop: stopUnit,
  enable: (call) => ifUnitExists(call, () => void call.system.enabledUnits.add(call.unit)),
  unmask: () => OK,
  disable: ({ unit, system }) => {
    system.enabledUnits.delete(unit);
    return OK;
  },
  mask: (call) => {
    call.system.enabledUnits.delete(call.unit);
    return stopUnit(call);
  },
  'is-active': ({ unit, system }) => {
    const isActive = system.activeUnits.has(unit) || isAlwaysActive(unit);
    const state = isActive ? 'active' : system.failedUnits.has(unit) ? 'failed' : 'inactive';
    return { code: isActive ? 0 : 3, out: `${state}\n` };
  },
  'is-enabled': ({ unit, system }) =>
    system.enabledUnits.has(unit) ? { code: 0, out: 'enabled\n' } : { code: 1, out: 'disabled\n' },
  'is-failed': ({ unit, system }) =>
    system.failedUnits.has(unit) ? { code: 0, out: 'failed\n' } : { code: 1, out: 'active\n' },
  cat: ({ unit, system }) => {
    const text = readUnitFile(system, unit);
    return text === undefined
      ? failure(1, `No files found for ${unit}.service.`)
      : { code: 0, out: text };
  },
};
