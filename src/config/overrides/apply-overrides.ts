// SPDX-License-Identifier: Apache-2.0
// Applies variables and flags to the file: flag > environment > file. Returns one tree, which is validated
// as a whole, and the origin of each overridden value.
import { type ConfigPath, configPathKey, formatConfigPath, valueAt } from '../config-path.ts';
import type { Problem } from '../problem.ts';
import { formatOriginFile, type ValueOrigin } from './origin.ts';
import type { OverrideRule } from './override-rule.ts';
import { resolveTargets } from './target.ts';
import { removeAt, setAt } from './tree-edit.ts';
import { FLAGS, VARIABLES } from './variables.ts';

export interface FlagValue {
  /** Including the dashes: `--port`. */
  readonly flag: string;
  readonly value: string;
}

export interface OverrideResult {
  readonly tree: Readonly<Record<string, unknown>>;
  /** By configPathKey: overridden values. */
  readonly origins: ReadonlyMap<string, ValueOrigin>;
  /** By configPathKey: mappings that were created to contain them. */
  readonly created: ReadonlyMap<string, ValueOrigin>;
  readonly paths: readonly ConfigPath[];
  readonly problems: readonly Problem[];
}

interface OverrideState {
  readonly tree: Record<string, unknown>;
  readonly origins: Map<string, ValueOrigin>;
  readonly created: Map<string, ValueOrigin>;
  readonly paths: ConfigPath[];
  readonly problems: Problem[];
}

export function applyOverrides(
  tree: Readonly<Record<string, unknown>>,
  environment: Readonly<Record<string, string | undefined>>,
  flags: readonly FlagValue[],
): OverrideResult {
  const work: OverrideState = {
    tree: structuredClone(tree),
    origins: new Map(),
    created: new Map(),
    paths: [],
    problems: [],
  };
  // In reverse order, so that the first row of the table takes precedence.
  for (const setting of VARIABLES.toReversed()) {
    const text = Object.hasOwn(environment, setting.name) ? environment[setting.name] : undefined;
    applyOverride(work, setting, text, { kind: 'environment', detail: setting.name });
  }
  for (const { flag, value } of flags) {
    const setting = FLAGS.find(({ name }) => name === flag);
    if (setting !== undefined) applyOverride(work, setting, value, { kind: 'flag', detail: flag });
  }
  return work;
}

// oxlint-disable-next-line max-params -- one private step of the loop above
function applyOverride(
  work: OverrideState,
  setting: OverrideRule,
  raw: string | undefined,
  origin: ValueOrigin,
): void {
  const text = raw?.trim() ?? '';
  if (text === '') return;
  const targets = resolveTargets(work.tree, setting.target);
  if (!targets.ok) {
    reportProblem(work, origin, { path: [], message: targets.problem });
    return;
  }
  for (const { path, created } of targets.value) {
    if (created !== undefined) createEntry(work, setting, created, origin);
    applyToPath(work, { setting, path, text, origin });
  }
}

// oxlint-disable-next-line max-params -- one private step of the loop above
function createEntry(
  work: OverrideState,
  setting: OverrideRule,
  path: ConfigPath,
  origin: ValueOrigin,
): void {
  setAt(work.tree, path, {});
  work.created.set(configPathKey(path), origin);
  for (const [key, value] of Object.entries(setting.createdWith ?? {})) {
    setAt(work.tree, [...path, key], value);
    work.origins.set(configPathKey([...path, key]), origin);
  }
}

function findMissingParents(tree: unknown, path: ConfigPath): readonly ConfigPath[] {
  return path
    .map((_, index) => path.slice(0, index))
    .filter((holder) => holder.length > 0 && valueAt(tree, holder) === undefined);
}

interface OverrideTarget {
  readonly setting: OverrideRule;
  readonly path: ConfigPath;
  readonly text: string;
  readonly origin: ValueOrigin;
}

function applyToPath(work: OverrideState, { setting, path, text, origin }: OverrideTarget): void {
  const current = valueAt(work.tree, path);
  const converted = setting.convert({ text, name: setting.name, current });
  if (!converted.ok) {
    reportProblem(work, origin, { path, message: converted.problem });
    return;
  }
  const { value, warning } = converted.value;
  if (warning !== undefined)
    reportProblem(work, origin, { path, message: warning, severity: 'warning' });
  warnAboutDuplicate(
    work,
    { setting, path, text, origin },
    JSON.stringify(current) === JSON.stringify(value),
  );
  const holders = findMissingParents(work.tree, path);
  if (!setAt(work.tree, path, value)) return;
  for (const holder of holders) work.created.set(configPathKey(holder), origin);
  warnAboutStaleSiblings(work, { setting, path, text, origin }, current);
  removeConflicts(work, { setting, path, text, origin }, value);
  work.origins.set(configPathKey(path), origin);
  work.paths.push(path);
}

/** Removes keys that cannot be combined with the override. */
function removeConflicts(work: OverrideState, application: OverrideTarget, value: unknown): void {
  const { setting, path, origin } = application;
  const siblings = (setting.replaces ?? []).map((key) => [...path.slice(0, -1), key]);
  const excluded = (setting.conflictsWith?.(value) ?? []).map((key) => [
    ...path.slice(0, 2),
    ...key.split('.'),
  ]);
  for (const dropped of [...siblings, ...excluded]) {
    if (valueAt(work.tree, dropped) === undefined) continue;
    const earlier = work.origins.get(configPathKey(dropped));
    if (earlier?.kind === origin.kind) {
      reportProblem(work, earlier, {
        path: dropped,
        message: `is not used: ${origin.detail} cannot be combined with it and takes precedence`,
        severity: 'warning',
      });
    }
    removeAt(work.tree, dropped);
    work.origins.delete(configPathKey(dropped));
    // The value is now the default, so its lines in the file are no longer its origin.
    work.paths.push(dropped);
  }
}

function warnAboutStaleSiblings(
  work: OverrideState,
  { setting, path, text, origin }: OverrideTarget,
  current: unknown,
): void {
  if (current === undefined || current === text) return;
  for (const key of setting.staleSiblings ?? []) {
    if (valueAt(work.tree, [...path.slice(0, -1), key]) === undefined) continue;
    reportProblem(work, origin, {
      path,
      message: `is verified against '${key}' from the file, which belongs to another image`,
      severity: 'warning',
    });
  }
}

function warnAboutDuplicate(
  work: OverrideState,
  { setting, path, origin }: OverrideTarget,
  isSame: boolean,
): void {
  const earlier = work.origins.get(configPathKey(path));
  if (isSame || setting.setsPart === true || earlier?.kind !== origin.kind) return;
  reportProblem(work, earlier, {
    path,
    message: `is not used: ${origin.detail} sets the same key and takes precedence`,
    severity: 'warning',
  });
}

function reportProblem(
  work: OverrideState,
  origin: ValueOrigin,
  what: { readonly path: ConfigPath; readonly message: string; readonly severity?: 'warning' },
): void {
  work.problems.push({
    file: formatOriginFile(origin),
    line: 0,
    col: 0,
    path: formatConfigPath(what.path),
    severity: what.severity ?? 'error',
    message: what.message,
  });
}
