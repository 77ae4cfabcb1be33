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
  const state: OverrideState = {
    tree: structuredClone(tree),
    origins: new Map(),
    created: new Map(),
    paths: [],
    problems: [],
  };
  // In reverse order, so that the first row of the table takes precedence.
  for (const rule of VARIABLES.toReversed()) {
    const text = Object.hasOwn(environment, rule.name) ? environment[rule.name] : undefined;
    applyOverride(state, rule, text, { kind: 'environment', detail: rule.name });
  }
  for (const { flag, value } of flags) {
    const rule = FLAGS.find(({ name }) => name === flag);
    if (rule !== undefined) applyOverride(state, rule, value, { kind: 'flag', detail: flag });
  }
  return state;
}

// oxlint-disable-next-line max-params -- one private step of the loop above
function applyOverride(
  state: OverrideState,
  rule: OverrideRule,
  raw: string | undefined,
  origin: ValueOrigin,
): void {
  const text = raw?.trim() ?? '';
  if (text === '') return;
  const targets = resolveTargets(state.tree, rule.target);
  if (!targets.ok) {
    reportProblem(state, origin, { path: [], message: targets.problem });
    return;
  }
  for (const { path, created } of targets.value) {
    if (created !== undefined) createEntry(state, rule, created, origin);
    applyToPath(state, { rule, path, text, origin });
  }
}

// oxlint-disable-next-line max-params -- one private step of the loop above
function createEntry(
  state: OverrideState,
  rule: OverrideRule,
  path: ConfigPath,
  origin: ValueOrigin,
): void {
  setAt(state.tree, path, {});
  state.created.set(configPathKey(path), origin);
  for (const [key, value] of Object.entries(rule.createdWith ?? {})) {
    setAt(state.tree, [...path, key], value);
    state.origins.set(configPathKey([...path, key]), origin);
  }
}

function findMissingParents(tree: unknown, path: ConfigPath): readonly ConfigPath[] {
  return path
    .map((_, index) => path.slice(0, index))
    .filter((parent) => parent.length > 0 && valueAt(tree, parent) === undefined);
}

interface OverrideTarget {
  readonly rule: OverrideRule;
  readonly path: ConfigPath;
  readonly text: string;
  readonly origin: ValueOrigin;
}

function applyToPath(state: OverrideState, { rule, path, text, origin }: OverrideTarget): void {
  const current = valueAt(state.tree, path);
  const converted = rule.convert({ text, name: rule.name, current });
  if (!converted.ok) {
    reportProblem(state, origin, { path, message: converted.problem });
    return;
  }
  const { value, warning } = converted.value;
  if (warning !== undefined)
    reportProblem(state, origin, { path, message: warning, severity: 'warning' });
  warnAboutDuplicate(
    state,
    { rule, path, text, origin },
    JSON.stringify(current) === JSON.stringify(value),
  );
  const missingParents = findMissingParents(state.tree, path);
  if (!setAt(state.tree, path, value)) return;
  for (const parent of missingParents) state.created.set(configPathKey(parent), origin);
  warnAboutStaleSiblings(state, { rule, path, text, origin }, current);
  removeConflicts(state, { rule, path, text, origin }, value);
  state.origins.set(configPathKey(path), origin);
  state.paths.push(path);
}

/** Removes keys that cannot be combined with the override. */
function removeConflicts(state: OverrideState, target: OverrideTarget, value: unknown): void {
  const { rule, path, origin } = target;
  const siblings = (rule.replaces ?? []).map((key) => [...path.slice(0, -1), key]);
  const conflicting = (rule.conflictsWith?.(value) ?? []).map((key) => [
    ...path.slice(0, 2),
    ...key.split('.'),
  ]);
  for (const removedPath of [...siblings, ...conflicting]) {
    if (valueAt(state.tree, removedPath) === undefined) continue;
    const earlier = state.origins.get(configPathKey(removedPath));
    if (earlier?.kind === origin.kind) {
      reportProblem(state, earlier, {
        path: removedPath,
        message: `is not used: ${origin.detail} cannot be combined with it and takes precedence`,
        severity: 'warning',
      });
    }
    removeAt(state.tree, removedPath);
    state.origins.delete(configPathKey(removedPath));
    // The value is now the default, so its lines in the file are no longer its origin.
    state.paths.push(removedPath);
  }
}

function warnAboutStaleSiblings(
  state: OverrideState,
  { rule, path, text, origin }: OverrideTarget,
  current: unknown,
): void {
  if (current === undefined || current === text) return;
  for (const key of rule.staleSiblings ?? []) {
    if (valueAt(state.tree, [...path.slice(0, -1), key]) === undefined) continue;
    reportProblem(state, origin, {
      path,
      message: `is verified against '${key}' from the file, which belongs to another image`,
      severity: 'warning',
    });
  }
}

function warnAboutDuplicate(
  state: OverrideState,
  { rule, path, origin }: OverrideTarget,
  isSame: boolean,
): void {
  const earlier = state.origins.get(configPathKey(path));
  if (isSame || rule.setsPart === true || earlier?.kind !== origin.kind) return;
  reportProblem(state, earlier, {
    path,
    message: `is not used: ${origin.detail} sets the same key and takes precedence`,
    severity: 'warning',
  });
}

function reportProblem(
  state: OverrideState,
  origin: ValueOrigin,
  problem: { readonly path: ConfigPath; readonly message: string; readonly severity?: 'warning' },
): void {
  state.problems.push({
    file: formatOriginFile(origin),
    line: 0,
    col: 0,
    path: formatConfigPath(problem.path),
    severity: problem.severity ?? 'error',
    message: problem.message,
  });
}
