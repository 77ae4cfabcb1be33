// SPDX-License-Identifier: Apache-2.0
// Converts text, environment and flags to an effective config, or to the list of all problems. Performs no
// I/O.
import { posix } from 'node:path';
import { CheckContext, type CheckFolders, checkFile } from '../checks/index.ts';
import { type ConfigPath, pathStartsWith } from '../config-path.ts';
import type { ParsedDocument } from '../document/parsed-document.ts';
import { readDocument } from '../document/read-document.ts';
import { buildConfig, type Config } from '../effective/config.ts';
import { applyDependentDefaults } from '../effective/dependent-defaults.ts';
import { resolvePath } from '../effective/resolve-path.ts';
import { explainIssues } from '../issues/explain-issues.ts';
import type { Finding } from '../issues/finding.ts';
import { findRefusedPaths, flattenIssues } from '../issues/flatten-issues.ts';
import { applyOverrides, type FlagValue } from '../overrides/apply-overrides.ts';
import type { ValueOrigin } from '../overrides/origin.ts';
import { findUnknownVariables } from '../overrides/unknown-variables.ts';
import { findKeysOfOtherMode, findPlannedKeys, type PlannedKey } from '../planned-keys.ts';
import type { PoolEntry } from '../pool-objects/pool-entry.ts';
import { hasErrors, type Problem, sortProblems } from '../problem.ts';
import { type ConfigFile, configSchema } from '../schema/index.ts';
import { mapLeafOrigins } from './leaf-origins.ts';
import { LocationIndex } from './location-index.ts';
import { collectSecrets, redactProblem } from './redact-secrets.ts';
import { extractValidPart } from './valid-part.ts';

export interface LoadInput {
  /** Undefined when all values come from environment, flags and defaults. */
  readonly file: { readonly path: string; readonly text: string } | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly flags: readonly FlagValue[];
  readonly homeFolder: string;
  /** Base of a relative path of the config file itself. */
  readonly workingFolder?: string;
  /** Temporary folders of the system, in addition to /tmp and similar. */
  readonly tempFolders?: readonly string[];
  /** More entries at the end of `pools`. */
  readonly pools?: readonly PoolEntry[] | undefined;
}

export interface LoadedConfig {
  readonly ok: true;
  readonly config: Config;
  /** The config in the notation of the file, with all defaults, as `config show` prints it. */
  readonly file: ConfigFile;
  /** Origin of each value of `file`, by path (`pools[0].size`). */
  readonly origins: ReadonlyMap<string, ValueOrigin>;
  /** Warnings only. */
  readonly problems: readonly Problem[];
  readonly planned: readonly PlannedKey[];
}

export interface LoadFailure {
  readonly ok: false;
  /** At least one error. */
  readonly problems: readonly Problem[];
}

export type LoadResult = LoadedConfig | LoadFailure;

export function loadConfig(input: LoadInput): LoadResult {
  const document = input.file === undefined ? emptyDocument() : readDocument(input.file.text);
  const overridden = applyOverrides(document.tree ?? {}, input.environment, input.flags);
  const locations = new LocationIndex({
    file: input.file?.path,
    locations: document.locations,
    overrides: overridden.origins,
    created: overridden.created,
    overridden: overridden.paths,
  });
  const secrets = collectSecrets(overridden.tree, input.environment);
  const validated: ValidatedTree =
    document.tree === undefined
      ? { findings: [], file: undefined }
      : validateTree(withPools(overridden.tree, input.pools), scopeFolders(input));
  const problems = [
    ...syntaxProblems(document, input.file?.path),
    ...overridden.problems,
    ...findUnknownVariables(input.environment, overridden.tree),
    ...validated.findings.map((finding) => locations.toProblem(finding)),
  ].map((problem) => redactProblem(problem, secrets));
  const sorted = sortProblems(problems);
  if (validated.file === undefined || hasErrors(sorted)) return { ok: false, problems: sorted };
  return {
    ok: true,
    config: buildConfig(validated.file, pathFolders(input)),
    file: validated.file,
    origins: mapLeafOrigins(validated.file, (path) => locations.origin(path)),
    problems: sorted,
    planned: [
      ...findPlannedKeys(overridden.tree),
      ...findKeysOfOtherMode(overridden.tree, validated.file.mode),
    ],
  };
}

/** A value of the file that is not a list is refused as it is. */
function withPools(
  tree: Readonly<Record<string, unknown>>,
  more: readonly PoolEntry[] = [],
): Readonly<Record<string, unknown>> {
  const { pools = [] } = tree;
  return Array.isArray(pools) && more.length > 0 ? { ...tree, pools: [...pools, ...more] } : tree;
}

interface ValidatedTree {
  readonly findings: readonly Finding[];
  readonly file: ConfigFile | undefined;
}

function validateTree(
  tree: Readonly<Record<string, unknown>>,
  folders: CheckFolders,
): ValidatedTree {
  const scope = new CheckContext(tree, folders);
  const parsed = configSchema.safeParse(tree);
  if (parsed.success) {
    const file = applyDependentDefaults(parsed.data);
    return { findings: checkFile(file, scope), file };
  }
  const findings = explainIssues(parsed.error.issues, tree);
  const refused = flattenIssues(parsed.error.issues, tree).flatMap(findRefusedPaths);
  const rest = extractValidPart(tree, parsed.error.issues);
  const further = rest === undefined ? [] : checkFile(applyDependentDefaults(rest.file), scope);
  return {
    findings: [
      ...findings,
      ...further
        .map((finding) => ({
          ...finding,
          path: restorePoolIndex(finding.path, rest?.poolIndices ?? []),
        }))
        .filter((finding) => !refused.some((path) => isAboutRefusedPart(path, finding))),
    ],
    file: undefined,
  };
}

/** Maps the index of a remaining pool back to its index in the file. */
function restorePoolIndex(path: ConfigPath, poolIndices: readonly number[]): ConfigPath {
  const [first, index, ...rest] = path;
  return first === 'pools' && typeof index === 'number'
    ? [first, poolIndices[index] ?? index, ...rest]
    : path;
}

/**
 * Whether a finding concerns a value that the schema refused. Such a finding is dropped, because the check
 * ran without that value.
 */
function isAboutRefusedPart(refused: ConfigPath, finding: Finding): boolean {
  const { path, message } = finding;
  const depends = finding.dependsOn?.some((other) => pathStartsWith(other, refused)) ?? false;
  if (depends || pathStartsWith(path, refused)) return true;
  if (finding.isIndependent === true) return false;
  const around = path.length > 3 ? path.slice(0, -1) : path;
  if (!pathStartsWith(refused, around)) return false;
  // For a mapping that contains it, only findings that name the refused key.
  return path.length > 3 || message.includes(String(refused[path.length]));
}

function syntaxProblems(document: ParsedDocument, file = 'config'): readonly Problem[] {
  return document.problems.map((problem) => ({ file, path: '', severity: 'error', ...problem }));
}

function emptyDocument(): ParsedDocument {
  return { tree: {}, locations: new Map(), problems: [] };
}

function scopeFolders(input: LoadInput): CheckFolders {
  return {
    temp: input.tempFolders ?? [],
    resolve: (path) => resolvePath(path, pathFolders(input)),
  };
}

function pathFolders({ file, homeFolder, workingFolder = '.' }: LoadInput) {
  const folder = file === undefined ? '.' : posix.dirname(file.path);
  const base = posix.isAbsolute(folder) ? folder : posix.join(workingFolder, folder);
  return { home: homeFolder, base };
}
