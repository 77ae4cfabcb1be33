// SPDX-License-Identifier: Apache-2.0
// Merges the user's cloud-config into ours. Lists are concatenated and maps merged; a conflict is refused and
// its key reported. Values are not reported, since they may be secret.
import { parseDocument, type Tags } from 'yaml';
import { accepted, type Parsed, refused } from '../model/parsed.ts';
import { isWellFormed } from './format-yaml.ts';

export type CloudConfig = Readonly<Record<string, unknown>>;

/** Keys that would change the machine's identity or prevent our part from running. */
const FORBIDDEN: Readonly<Record<string, string>> = {
  hostname: "the host name must be the machine's name",
  fqdn: "the host name must be the machine's name",
  preserve_hostname: "the host name must be the machine's name",
  create_hostname_file: "the host name must be the machine's name",
  cloud_init_modules: 'it could disable modules that the join needs',
  cloud_config_modules: 'it could disable modules that the join needs',
  cloud_final_modules: 'it could disable modules that the join needs',
  datasource: 'the data source must be the seed',
  datasource_list: 'the data source must be the seed',
  merge_how: 'the guest has nothing left to merge',
  merge_type: 'the guest has nothing left to merge',
};

export function parseCloudConfig(text: string): Parsed<CloudConfig> {
  if (!isWellFormed(text)) return refused('the cloud-config contains invalid Unicode');
  if (!/^#cloud-config[ \t]*\r?(\n|$)/.test(text)) {
    return refused("the cloud-config must start with the line '#cloud-config'");
  }
  const document = parseDocument(text, { version: '1.1', customTags: withoutTimestamps });
  const [error] = [...document.errors, ...document.warnings];
  if (error !== undefined)
    return refused(`the cloud-config is not valid YAML: ${firstLine(error)}`);
  const value: unknown = document.toJS();
  if (value === null || value === undefined) return accepted({});
  if (!isRecord(value)) return refused('the cloud-config must be a mapping');
  const forbidden = Object.keys(value).find((key) => Object.hasOwn(FORBIDDEN, key));
  if (forbidden !== undefined) {
    return refused(`the cloud-config must not set '${forbidden}': ${FORBIDDEN[forbidden]}`);
  }
  const problem = commandsProblem(value, 'bootcmd') ?? commandsProblem(value, 'runcmd');
  return problem === undefined ? accepted(value) : refused(problem);
}

/** Keeps dates as text, which is what cloud-init modules expect. Binary data is declared by `encoding`. */
function withoutTimestamps(tags: Tags): Tags {
  return tags.filter((tag) => !/timestamp|binary/.test(typeof tag === 'string' ? tag : tag.tag));
}

/** One invalid entry makes cloud-init skip all commands, ours included. */
function commandsProblem(config: CloudConfig, key: string): string | undefined {
  const commands = config[key];
  if (commands === undefined || commands === null) return undefined;
  if (!Array.isArray(commands)) return `the cloud-config's ${key} must be a list`;
  const at = commands.findIndex((each) => typeof each !== 'string' && !Array.isArray(each));
  if (at < 0) return undefined;
  return `entry ${at + 1} of the cloud-config's ${key} must be a string or a list; a string that contains ': ' needs quotes`;
}

function firstLine({ message, code }: Error & { readonly code: string }): string {
  // The other lines quote the document, which may contain secrets.
  const [line = ''] = message.split('\n');
  return line.replace(/:$/, '') || code;
}

/** `taken`: paths of files that are written later by the guest agent and would replace the user's. */
export function mergeCloudConfig(
  ours: CloudConfig,
  theirs: CloudConfig,
  taken: readonly string[] = [],
): Parsed<CloudConfig> {
  const paths = [...namesIn(ours['write_files'], 'path'), ...taken];
  const problem =
    duplicateProblem('write_files', paths, namesIn(theirs['write_files'], 'path')) ??
    duplicateProblem('users', namesIn(ours['users'], 'name'), namesIn(theirs['users'], 'name'));
  if (problem !== undefined) return refused(problem);
  const { runcmd, ...rest } = ours;
  const { runcmd: commands, ...others } = theirs;
  const merged = mergeMaps(rest, others, '');
  // Our command is last: it joins, and the user's commands must have run by then.
  const all = [commands ?? [], runcmd ?? []].flat();
  return merged.ok ? accepted({ ...merged.value, ...(all.length > 0 && { runcmd: all }) }) : merged;
}

/** Finds a file or user that both define. */
function duplicateProblem(
  list: string,
  ours: readonly string[],
  theirs: readonly string[],
): string | undefined {
  const duplicate = theirs.find((name) => ours.includes(name));
  return duplicate === undefined
    ? undefined
    : `the cloud-config's ${list} contains '${duplicate}', which pvescaler sets`;
}

function namesIn(value: unknown, key: string): string[] {
  const entries: readonly unknown[] = Array.isArray(value) ? value : [];
  return entries
    .map((entry) => (isRecord(entry) ? entry[key] : entry))
    .filter((name) => typeof name === 'string');
}

function mergeMaps(ours: CloudConfig, theirs: CloudConfig, path: string): Parsed<CloudConfig> {
  const merged = new Map(Object.entries(ours));
  for (const [key, value] of Object.entries(theirs)) {
    const both = merged.has(key)
      ? mergeValues(merged.get(key), value, `${path}${key}`)
      : accepted(value);
    if (!both.ok) return both;
    merged.set(key, both.value);
  }
  return accepted(Object.fromEntries(merged));
}

function mergeValues(ours: unknown, theirs: unknown, path: string): Parsed<unknown> {
  if (isRecord(ours) && isRecord(theirs)) return mergeMaps(ours, theirs, `${path}.`);
  if (Array.isArray(ours) && Array.isArray(theirs)) return accepted(union(ours, theirs));
  if (ours === theirs) return accepted(ours);
  return refused(`the cloud-config sets '${path}', which pvescaler sets to another value`);
}

/** Strings are deduplicated (packages, keys); other entries are kept in order. */
function union(ours: readonly unknown[], theirs: readonly unknown[]): unknown[] {
  const seen = new Set(ours);
  return [...ours, ...theirs.filter((each) => typeof each !== 'string' || !seen.has(each))];
}

function isRecord(value: unknown): value is CloudConfig {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
  );
}
