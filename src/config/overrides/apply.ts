// SPDX-License-Identifier: Apache-2.0
// Lays variables and flags over the file: flag > environment > file. The result is one tree that is validated
// as a whole, and for each overridden value the setting it came from.
import { type ConfigPath, pathKey, pathText, valueAt } from '../config-path.ts';
import type { Problem } from '../problem.ts';
import { type Origin, originFile } from './origin.ts';
import type { Setting } from './setting.ts';
import { targetsOf } from './target.ts';
import { removeAt, setAt } from './tree-edit.ts';
import { FLAGS, VARIABLES } from './variables.ts';

export interface FlagValue {
  /** With its dashes: `--port`. */
  readonly flag: string;
  readonly value: string;
}

export interface Overridden {
  readonly tree: Readonly<Record<string, unknown>>;
  /** By pathKey: the values that were set. */
  readonly origins: ReadonlyMap<string, Origin>;
  /** By pathKey: mappings that were made to hold them. */
  readonly made: ReadonlyMap<string, Origin>;
  readonly paths: readonly ConfigPath[];
  readonly problems: readonly Problem[];
}

interface Work {
  readonly tree: Record<string, unknown>;
  readonly origins: Map<string, Origin>;
  readonly made: Map<string, Origin>;
  readonly paths: ConfigPath[];
  readonly problems: Problem[];
}

export function applyOverrides(
  tree: Readonly<Record<string, unknown>>,
  environment: Readonly<Record<string, string | undefined>>,
  flags: readonly FlagValue[],
): Overridden {
  const work: Work = {
    tree: structuredClone(tree),
    origins: new Map(),
    made: new Map(),
    paths: [],
    problems: [],
  };
  // From the last to the first, so that the first in the table has the last word.
  for (const setting of VARIABLES.toReversed()) {
    const text = Object.hasOwn(environment, setting.name) ? environment[setting.name] : undefined;
    apply(work, setting, text, { kind: 'environment', detail: setting.name });
  }
  for (const { flag, value } of flags) {
    const setting = FLAGS.find(({ name }) => name === flag);
    if (setting !== undefined) apply(work, setting, value, { kind: 'flag', detail: flag });
  }
  return work;
}

// oxlint-disable-next-line max-params -- one private step of the loop above
function apply(work: Work, setting: Setting, raw: string | undefined, origin: Origin): void {
  const text = raw?.trim() ?? '';
  if (text === '') return;
  const targets = targetsOf(work.tree, setting.target);
  if (!targets.ok) {
    report(work, origin, { path: [], message: targets.problem });
    return;
  }
  for (const { path, created } of targets.value) {
    if (created !== undefined) create(work, setting, created, origin);
    applyAt(work, { setting, path, text, origin });
  }
}

// oxlint-disable-next-line max-params -- one private step of the loop above
function create(work: Work, setting: Setting, path: ConfigPath, origin: Origin): void {
  setAt(work.tree, path, {});
  work.made.set(pathKey(path), origin);
  for (const [key, value] of Object.entries(setting.whenCreated ?? {})) {
    setAt(work.tree, [...path, key], value);
    work.origins.set(pathKey([...path, key]), origin);
  }
}

function missingHolders(tree: unknown, path: ConfigPath): readonly ConfigPath[] {
  return path
    .map((_, index) => path.slice(0, index))
    .filter((holder) => holder.length > 0 && valueAt(tree, holder) === undefined);
}

interface Application {
  readonly setting: Setting;
  readonly path: ConfigPath;
  readonly text: string;
  readonly origin: Origin;
}

function applyAt(work: Work, { setting, path, text, origin }: Application): void {
  const present = valueAt(work.tree, path);
  const converted = setting.convert({ text, name: setting.name, present });
  if (!converted.ok) {
    report(work, origin, { path, message: converted.problem });
    return;
  }
  const { value, warning } = converted.value;
  if (warning !== undefined) report(work, origin, { path, message: warning, severity: 'warning' });
  warnOfContradiction(
    work,
    { setting, path, text, origin },
    JSON.stringify(present) === JSON.stringify(value),
  );
  const holders = missingHolders(work.tree, path);
  if (!setAt(work.tree, path, value)) return;
  for (const holder of holders) work.made.set(pathKey(holder), origin);
  warnOfKept(work, { setting, path, text, origin }, present);
  dropAlternatives(work, { setting, path, text, origin }, value);
  work.origins.set(pathKey(path), origin);
  work.paths.push(path);
}

/** What the file says by other keys must not stand in the way of a setting that wins over it. */
function dropAlternatives(work: Work, application: Application, value: unknown): void {
  const { setting, path, origin } = application;
  const siblings = (setting.replaces ?? []).map((key) => [...path.slice(0, -1), key]);
  const excluded = (setting.excludes?.(value) ?? []).map((key) => [
    ...path.slice(0, 2),
    ...key.split('.'),
  ]);
  for (const dropped of [...siblings, ...excluded]) {
    if (valueAt(work.tree, dropped) === undefined) continue;
    const earlier = work.origins.get(pathKey(dropped));
    if (earlier?.kind === origin.kind) {
      report(work, earlier, {
        path: dropped,
        message: `is not used: ${origin.detail} cannot stand beside it and comes first`,
        severity: 'warning',
      });
    }
    removeAt(work.tree, dropped);
    work.origins.delete(pathKey(dropped));
    // Its lines in the file are no longer where the value, now the default, comes from.
    work.paths.push(dropped);
  }
}

function warnOfKept(
  work: Work,
  { setting, path, text, origin }: Application,
  present: unknown,
): void {
  if (present === undefined || present === text) return;
  for (const key of setting.keeps ?? []) {
    if (valueAt(work.tree, [...path.slice(0, -1), key]) === undefined) continue;
    report(work, origin, {
      path,
      message: `is checked against '${key}' of the file, which was written for another image`,
      severity: 'warning',
    });
  }
}

function warnOfContradiction(
  work: Work,
  { setting, path, origin }: Application,
  isSame: boolean,
): void {
  const earlier = work.origins.get(pathKey(path));
  if (isSame || setting.isPart === true || earlier?.kind !== origin.kind) return;
  report(work, earlier, {
    path,
    message: `is not used: ${origin.detail} stands for the same key and comes first`,
    severity: 'warning',
  });
}

function report(
  work: Work,
  origin: Origin,
  what: { readonly path: ConfigPath; readonly message: string; readonly severity?: 'warning' },
): void {
  work.problems.push({
    file: originFile(origin),
    line: 0,
    col: 0,
    path: pathText(what.path),
    severity: what.severity ?? 'error',
    message: what.message,
  });
}
