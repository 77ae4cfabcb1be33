// SPDX-License-Identifier: Apache-2.0
// The command line of systemd, as far as a first boot uses it.
import {
  type Call,
  type CommandTable,
  failure,
  OK,
  type Outcome,
  readOptions,
} from '../shell/command.ts';
import { isAlwaysActive, known, startUnit, stopUnit, type UnitCall, unitFile } from './units.ts';

export const SYSTEMCTL: CommandTable = {
  systemctl: (call) => systemctl(call, call.args),
  service: (call) => systemctl(call, call.args.slice(0, 2).toReversed()),
};

const POWER: Readonly<Record<string, 'off' | 'reboot'>> = {
  reboot: 'reboot',
  poweroff: 'off',
  halt: 'off',
};

const WITHOUT_EFFECT = new Set(
  'daemon-reload daemon-reexec reset-failed status show list-units preset set-property'.split(' '),
);

async function systemctl(call: Call, args: readonly string[]): Promise<Outcome> {
  const options = readOptions(args, ['t', 'type', 'n', 'p', 'property']);
  const [verb = '', ...names] = options.operands;
  if (verb === 'is-system-running') return systemState(call, options.has('wait'));
  if (Object.hasOwn(POWER, verb)) return power(call, POWER[verb]);
  const act = Object.hasOwn(VERBS, verb) ? VERBS[verb] : undefined;
  if (act === undefined) {
    return WITHOUT_EFFECT.has(verb) ? OK : failure(1, `Unknown command verb '${verb}'.`);
  }
  const verbs = [act, ...(options.has('now') ? [verb === 'enable' ? startUnit : stopUnit] : [])];
  const total = await onEach(call, names, verbs);
  return options.has('q', 'quiet') ? { code: total.code } : total;
}

/** All units are tried; the first failure's code is the answer. */
async function onEach(
  call: Call,
  names: readonly string[],
  verbs: readonly Verb[],
): Promise<Outcome> {
  const total = { code: 0, out: '', err: '' };
  for (const name of names) {
    const unit = name.replace(/\.service$/, '');
    for (const act of verbs) {
      const outcome = await act({ unit, system: call.system, runner: call.runner });
      total.out += outcome.out ?? '';
      total.err += outcome.err ?? '';
      total.code ||= outcome.code;
      if (outcome.code !== 0) break;
    }
  }
  return total;
}

function power(call: Call, request: 'off' | 'reboot' | undefined): Outcome {
  call.system.powerRequest = request;
  call.system.changed();
  return OK;
}

async function systemState({ system }: Call, waits: boolean): Promise<Outcome> {
  if (waits) await system.untilBooted();
  if (!system.bootFinished) return { code: 1, out: 'starting\n' };
  return system.failedUnits.size > 0
    ? { code: 1, out: 'degraded\n' }
    : { code: 0, out: 'running\n' };
}

type Verb = (call: UnitCall) => Outcome | Promise<Outcome>;

const VERBS: Readonly<Record<string, Verb>> = {
  start: startUnit,
  restart: startUnit,
  reload: (call) => known(call, () => OK),
  'try-restart': (call) => (call.system.activeUnits.has(call.unit) ? startUnit(call) : OK),
  'reload-or-restart': startUnit,
  stop: stopUnit,
  enable: (call) => known(call, () => void call.system.enabledUnits.add(call.unit)),
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
    const text = unitFile(system, unit);
    return text === undefined
      ? failure(1, `No files found for ${unit}.service.`)
      : { code: 0, out: text };
  },
};
