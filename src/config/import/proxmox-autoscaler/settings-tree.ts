// SPDX-License-Identifier: Apache-2.0
// Converts a settings module to a section: names and values with their positions, and notes about values
// that come from the environment or would need Python to evaluate.

import type { ImportContext } from '../context.ts';
import { evaluatePythonModule, type PythonModule, type PythonSetting } from '../python/module.ts';
import type { SourceEnvironment, SourcePosition } from '../result.ts';
import { SourceSection, type SourceTree } from '../source/tree.ts';
import type { SourceProblem } from '../source/yaml-tree.ts';

export type SettingsModule =
  | { readonly ok: true; readonly module: PythonModule; readonly place: PositionMapper }
  | { readonly ok: false; readonly problem: SourceProblem };

/** Maps a position in the module to a position in the file that contains it. */
type PositionMapper = (inner: SourcePosition) => SourcePosition;

interface ModuleSource {
  readonly text: string;
  readonly environment: SourceEnvironment;
  readonly place: PositionMapper;
}

export function readSettings({ text, environment, place }: ModuleSource): SettingsModule {
  const reader = evaluatePythonModule(text, environment);
  if (reader.ok) return { ok: true, module: reader.module, place };
  return { ok: false, problem: { ...place(reader.problem), message: reader.problem.message } };
}

export function toSettingsSection(
  context: ImportContext,
  { module, place }: { readonly module: PythonModule; readonly place: PositionMapper },
): SourceSection {
  const entries = new Map<string, SourceTree>();
  for (const setting of module.settings.values()) {
    const at = place(setting.at);
    const where = { path: setting.name, at };
    noteVariable(context, setting, where);
    if (setting.value !== undefined) {
      entries.set(setting.name, { kind: 'scalar', ...where, value: setting.value });
    } else if (setting.variable === undefined) {
      context.writer.note(
        where,
        'action-required',
        'is computed by Python code, which the import does not run; it was treated as absent',
      );
    }
  }
  for (const at of module.skipped) {
    const where = { path: '(statement)', at: place(at) };
    context.writer.note(
      where,
      'not-imported',
      'is not a plain assignment; the import does not run Python code, so the statement was ignored',
    );
  }
  return new SourceSection('', { kind: 'map', path: '', entries });
}

function noteVariable(
  { writer, environment }: ImportContext,
  setting: PythonSetting,
  where: { readonly path: string; readonly at: SourcePosition },
): void {
  const { variable } = setting;
  if (variable === undefined) return;
  if (Object.hasOwn(environment, variable) && setting.value === environment[variable]) {
    writer.note(
      where,
      'imported-differently',
      `was read from the environment variable ${variable}`,
    );
  } else if (setting.value === undefined) {
    writer.note(
      where,
      'action-required',
      `is read from ${variable}, which is not set; it was treated as absent`,
    );
  } else {
    writer.note(
      where,
      'imported-differently',
      `is read from ${variable} when it and all other variables of the same try block are set; the value in the file was used`,
    );
  }
}
