// SPDX-License-Identifier: Apache-2.0
// From text, environment and flags to an effective config, or to everything that is wrong with it. No input
// or output happens here.
import { posix } from 'node:path';
import { CheckScope, checkFile, type ScopeFolders } from '../checks/index.ts';
import type { ConfigPath } from '../config-path.ts';
import type { ReadDocument } from '../document/document.ts';
import { readDocument } from '../document/read-document.ts';
import { completeFile } from '../effective/complete.ts';
import { buildConfig, type Config } from '../effective/config.ts';
import { resolvePath } from '../effective/resolve-path.ts';
import { explainIssues } from '../issues/explain.ts';
import type { Finding } from '../issues/finding.ts';
import { plainIssues, refusedPaths } from '../issues/plain-issues.ts';
import { applyOverrides, type FlagValue } from '../overrides/apply.ts';
import type { Origin } from '../overrides/origin.ts';
import { strayVariables } from '../overrides/stray-variables.ts';
import { type PlannedKey, plannedKeys } from '../planned.ts';
import { hasErrors, type Problem, sortProblems } from '../problem.ts';
import { type ConfigFile, configSchema } from '../schema/index.ts';
import { knownSecrets, withoutSecrets } from './known-secrets.ts';
import { leafOrigins } from './leaf-origins.ts';
import { Places } from './places.ts';
import { salvage } from './salvage.ts';

export interface LoadInput {
  /** Undefined: everything comes from environment, flags and defaults. */
  readonly file: { readonly path: string; readonly text: string } | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly flags: readonly FlagValue[];
  readonly homeFolder: string;
  /** What a relative path of the config file itself starts at. */
  readonly workingFolder?: string;
  /** The system's own, beside /tmp and the like. */
  readonly tempFolders?: readonly string[];
}

export interface LoadedConfig {
  readonly ok: true;
  readonly config: Config;
  /** The same in the words of the file, with every default: what `config show` prints. */
  readonly file: ConfigFile;
  /** Of each value of `file`, by path (`pools[0].size`). */
  readonly origins: ReadonlyMap<string, Origin>;
  /** Warnings only. */
  readonly problems: readonly Problem[];
  readonly planned: readonly PlannedKey[];
}

export interface FaultyConfig {
  readonly ok: false;
  /** At least one error. */
  readonly problems: readonly Problem[];
}

export type LoadResult = LoadedConfig | FaultyConfig;

export function loadConfig(input: LoadInput): LoadResult {
  const document = input.file === undefined ? emptyDocument() : readDocument(input.file.text);
  const overridden = applyOverrides(document.tree ?? {}, input.environment, input.flags);
  const places = new Places({
    file: input.file?.path,
    places: document.places,
    overrides: overridden.origins,
    made: overridden.made,
    overridden: overridden.paths,
  });
  const secrets = knownSecrets(overridden.tree, input.environment);
  const judged: Judged =
    document.tree === undefined
      ? { findings: [], file: undefined }
      : judge(overridden.tree, scopeFolders(input));
  const problems = [
    ...documentProblems(document, input.file?.path),
    ...overridden.problems,
    ...strayVariables(input.environment, overridden.tree),
    ...judged.findings.map((finding) => places.problem(finding)),
  ].map((problem) => withoutSecrets(problem, secrets));
  const sorted = sortProblems(problems);
  if (judged.file === undefined || hasErrors(sorted)) return { ok: false, problems: sorted };
  return {
    ok: true,
    config: buildConfig(judged.file, foldersOf(input)),
    file: judged.file,
    origins: leafOrigins(judged.file, (path) => places.origin(path)),
    problems: sorted,
    planned: plannedKeys(overridden.tree),
  };
}

interface Judged {
  readonly findings: readonly Finding[];
  readonly file: ConfigFile | undefined;
}

function judge(tree: Readonly<Record<string, unknown>>, folders: ScopeFolders): Judged {
  const scope = new CheckScope(tree, folders);
  const parsed = configSchema.safeParse(tree);
  if (parsed.success) {
    const file = completeFile(parsed.data);
    return { findings: checkFile(file, scope), file };
  }
  const findings = explainIssues(parsed.error.issues, tree);
  const refused = plainIssues(parsed.error.issues, tree).flatMap(refusedPaths);
  const rest = salvage(tree, parsed.error.issues);
  const further = rest === undefined ? [] : checkFile(completeFile(rest.file), scope);
  return {
    findings: [
      ...findings,
      ...further
        .map((finding) => ({ ...finding, path: moved(finding.path, rest?.poolIndices ?? []) }))
        .filter((finding) => !refused.some((path) => isAbout(path, finding))),
    ],
    file: undefined,
  };
}

/** To where the pool stands in the file. */
function moved(path: ConfigPath, poolIndices: readonly number[]): ConfigPath {
  const [first, index, ...rest] = path;
  return first === 'pools' && typeof index === 'number'
    ? [first, poolIndices[index] ?? index, ...rest]
    : path;
}

/** About what the schema has refused nothing more is said: the check missed the part that was taken out. */
function isAbout(refused: ConfigPath, finding: Finding): boolean {
  const { path, message } = finding;
  const depends = finding.dependsOn?.some((other) => startsWith(other, refused)) ?? false;
  if (depends || startsWith(path, refused)) return true;
  if (finding.standsAlone === true) return false;
  const around = path.length > 3 ? path.slice(0, -1) : path;
  if (!startsWith(refused, around)) return false;
  // Of a mapping around it, only what names the refused key.
  return path.length > 3 || message.includes(String(refused[path.length]));
}

function startsWith(path: ConfigPath, beginning: ConfigPath): boolean {
  return beginning.every((step, index) => path[index] === step);
}

function documentProblems(document: ReadDocument, file = 'config'): readonly Problem[] {
  return document.problems.map((problem) => ({ file, path: '', severity: 'error', ...problem }));
}

function emptyDocument(): ReadDocument {
  return { tree: {}, places: new Map(), problems: [] };
}

function scopeFolders(input: LoadInput): ScopeFolders {
  return {
    temp: input.tempFolders ?? [],
    resolve: (path) => resolvePath(path, foldersOf(input)),
  };
}

function foldersOf({ file, homeFolder, workingFolder = '.' }: LoadInput) {
  const folder = file === undefined ? '.' : posix.dirname(file.path);
  const base = posix.isAbsolute(folder) ? folder : posix.join(workingFolder, folder);
  return { home: homeFolder, base };
}
