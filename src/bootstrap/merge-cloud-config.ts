// SPDX-License-Identifier: Apache-2.0
// The user's cloud-config joined with ours. Lists add up, maps are merged, and where both say different things
// of the same thing nobody wins: a refusal names the place. Values are not repeated; they may be secret.
import { parseDocument, type Tags } from 'yaml';
import { accepted, type Parsed, refused } from '../model/parsed.ts';
import { isWellFormed } from './yaml-text.ts';

export type CloudConfig = Readonly<Record<string, unknown>>;

/** Keys that would undo what makes the machine the one that it is, or keep our part from running. */
const FORBIDDEN: Readonly<Record<string, string>> = {
  hostname: "the host name is the machine's name",
  fqdn: "the host name is the machine's name",
  preserve_hostname: "the host name is the machine's name",
  create_hostname_file: "the host name is the machine's name",
  cloud_init_modules: 'it would leave out modules that the join needs',
  cloud_config_modules: 'it would leave out modules that the join needs',
  cloud_final_modules: 'it would leave out modules that the join needs',
  datasource: 'the data source is the seed',
  datasource_list: 'the data source is the seed',
  merge_how: 'there is nothing left to merge in the guest',
  merge_type: 'there is nothing left to merge in the guest',
};

export function parseCloudConfig(text: string): Parsed<CloudConfig> {
  if (!isWellFormed(text)) return refused('the cloud-config has broken characters');
  if (!/^#cloud-config[ \t]*\r?(\n|$)/.test(text)) {
    return refused("the cloud-config does not start with a line '#cloud-config'");
  }
  const document = parseDocument(text, { version: '1.1', customTags: withoutTimes });
  const [error] = [...document.errors, ...document.warnings];
  if (error !== undefined) return refused(`the cloud-config is not YAML: ${firstLine(error)}`);
  const value: unknown = document.toJS();
  if (value === null || value === undefined) return accepted({});
  if (!isRecord(value)) return refused('the cloud-config is not a mapping');
  const forbidden = Object.keys(value).find((key) => Object.hasOwn(FORBIDDEN, key));
  if (forbidden !== undefined) {
    return refused(`the cloud-config sets '${forbidden}': ${FORBIDDEN[forbidden]}`);
  }
  const problem = commandsProblem(value, 'bootcmd') ?? commandsProblem(value, 'runcmd');
  return problem === undefined ? accepted(value) : refused(problem);
}

/** A date stays the text that it was, which is what the modules with dates want; binary data has `encoding`. */
function withoutTimes(tags: Tags): Tags {
  return tags.filter((tag) => !/timestamp|binary/.test(typeof tag === 'string' ? tag : tag.tag));
}

/** One bad entry, and cloud-init runs none of them, ours neither. */
function commandsProblem(config: CloudConfig, key: string): string | undefined {
  const commands = config[key];
  if (commands === undefined || commands === null) return undefined;
  if (!Array.isArray(commands)) return `the cloud-config's ${key} is not a list`;
  const at = commands.findIndex((each) => typeof each !== 'string' && !Array.isArray(each));
  if (at < 0) return undefined;
  return `entry ${at + 1} of the cloud-config's ${key} is neither a text nor a list; a text with ': ' needs quotes`;
}

function firstLine({ message, code }: Error & { readonly code: string }): string {
  // What follows the first line is a piece of the text.
  const [line = ''] = message.split('\n');
  return line.replace(/:$/, '') || code;
}

/** `taken`: paths of files that come later, by another way, and would replace the user's. */
export function mergeCloudConfig(
  ours: CloudConfig,
  theirs: CloudConfig,
  taken: readonly string[] = [],
): Parsed<CloudConfig> {
  const paths = [...namesIn(ours['write_files'], 'path'), ...taken];
  const problem =
    clash('write_files', paths, namesIn(theirs['write_files'], 'path')) ??
    clash('users', namesIn(ours['users'], 'name'), namesIn(theirs['users'], 'name'));
  if (problem !== undefined) return refused(problem);
  const { runcmd, ...rest } = ours;
  const { runcmd: commands, ...others } = theirs;
  const merged = mergeMaps(rest, others, '');
  // Ours is last: it joins, and what the user prepares has to be there by then.
  const all = [commands ?? [], runcmd ?? []].flat();
  return merged.ok ? accepted({ ...merged.value, ...(all.length > 0 && { runcmd: all }) }) : merged;
}

/** The same file or the same user twice. */
function clash(
  list: string,
  ours: readonly string[],
  theirs: readonly string[],
): string | undefined {
  const twice = theirs.find((name) => ours.includes(name));
  return twice === undefined
    ? undefined
    : `the cloud-config's ${list} has '${twice}', which is set already`;
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
  return refused(`the cloud-config sets '${path}', which is set already`);
}

/** Each text once (packages, keys); everything else is kept, in order. */
function union(ours: readonly unknown[], theirs: readonly unknown[]): unknown[] {
  const seen = new Set(ours);
  return [...ours, ...theirs.filter((each) => typeof each !== 'string' || !seen.has(each))];
}

function isRecord(value: unknown): value is CloudConfig {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
  );
}
