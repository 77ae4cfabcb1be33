// SPDX-License-Identifier: Apache-2.0
// A settings module as the mapping reads it: names and values with their places, and notes about what came
// from, or would come from, the environment or could not be read without running Python.

import type { Context } from '../context.ts';
import { type PythonModule, readPython, type Setting } from '../python/module.ts';
import type { Environment, Position } from '../result.ts';
import { Section, type Tree } from '../source/tree.ts';
import type { TextProblem } from '../source/yaml-tree.ts';

export type SettingsModule =
  | { readonly ok: true; readonly module: PythonModule; readonly place: Placer }
  | { readonly ok: false; readonly problem: TextProblem };

/** Turns a place in the module into one in the file it stands in. */
type Placer = (inner: Position) => Position;

interface ModuleSource {
  readonly text: string;
  readonly environment: Environment;
  readonly place: Placer;
}

export function readSettings({ text, environment, place }: ModuleSource): SettingsModule {
  const read = readPython(text, environment);
  if (read.ok) return { ok: true, module: read.module, place };
  return { ok: false, problem: { ...place(read.problem), message: read.problem.message } };
}

export function toSection(
  context: Context,
  { module, place }: { readonly module: PythonModule; readonly place: Placer },
): Section {
  const entries = new Map<string, Tree>();
  for (const setting of module.settings.values()) {
    const at = place(setting.at);
    const where = { path: setting.name, at };
    noteVariable(context, setting, where);
    if (setting.value !== undefined) {
      entries.set(setting.name, { kind: 'scalar', ...where, value: setting.value });
    } else if (setting.variable === undefined) {
      context.work.note(
        where,
        'needs-you',
        'is computed by Python, which is not run here: it was treated as absent',
      );
    }
  }
  for (const at of module.skipped) {
    const where = { path: '(statement)', at: place(at) };
    context.work.note(
      where,
      'not-carried',
      'is not a plain assignment, and Python is not run here: what it does was left out',
    );
  }
  return new Section('', { kind: 'map', path: '', entries });
}

function noteVariable(
  { work, environment }: Context,
  setting: Setting,
  where: { readonly path: string; readonly at: Position },
): void {
  const { variable } = setting;
  if (variable === undefined) return;
  if (Object.hasOwn(environment, variable) && setting.value === environment[variable]) {
    work.note(where, 'carried-differently', `was taken from ${variable} of the environment`);
  } else if (setting.value === undefined) {
    work.note(
      where,
      'needs-you',
      `comes from ${variable}, which is not set here: it was treated as absent`,
    );
  } else {
    work.note(
      where,
      'carried-differently',
      `comes from ${variable} there when that (and every other variable asked for in the same try block) is set; the value written in the file was taken`,
    );
  }
}
