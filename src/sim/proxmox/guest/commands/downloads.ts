// SPDX-License-Identifier: Apache-2.0
// curl, wget, tar and placeholders for downloaded files. A placeholder is a text with the URL of the download. The guest
// can store, copy and install it. Every checksum of it is accepted, because the real content is unknown.
import type { DownloadResult } from '../guest-types.ts';
import { ServerApi } from '../kubelet/server-api.ts';
import {
  type CommandCall,
  type CommandResult,
  type CommandTable,
  failure,
  OK,
  parseOptions,
} from '../shell/command.ts';
import { newFileMode } from '../shell/redirects.ts';
import { baseName } from '../system/files.ts';
import { sha256Hex } from '../system/sha256.ts';
import { INSTALL_SCRIPTS, KNOWN_ARCHIVES, listReleaseFiles } from './release-files.ts';

const PLACEHOLDER_MARK = '\u007fsimulated download of ';

export const DOWNLOAD_COMMANDS: CommandTable = { curl, wget, tar, unzip: () => OK, gpg };

export function placeholderFor(url: string): string {
  return `${PLACEHOLDER_MARK}${url}\n`;
}

export function isPlaceholder(text: string): boolean {
  return text.includes(PLACEHOLDER_MARK);
}

export function placeholderUrl(text: string): string {
  return /simulated download of (\S+)/.exec(text)?.[1] ?? '';
}

const CURL_OPTIONS_WITH_VALUE =
  'o output H header w write-out m max-time retry retry-delay connect-timeout X request d data u user A cacert E cert key x proxy resolve output-dir retry-max-time'.split(
    ' ',
  );
const WGET_OPTIONS_WITH_VALUE =
  'O output-document T timeout t tries P directory-prefix o header ca-certificate'.split(' ');

async function curl(call: CommandCall): Promise<CommandResult> {
  const options = parseOptions(call.args, CURL_OPTIONS_WITH_VALUE);
  const [url] = options.operands;
  if (url === undefined) return failure(2, 'curl: no URL specified!');
  const content = await fetchOverConnection(call, url, options.value('cacert'));
  if (typeof content !== 'string')
    return failure(content.exitCode, `curl: (${content.exitCode}) ${content.message}`);
  const name = options.has('O', 'remote-name') ? baseName(url) : options.value('o', 'output');
  const body = options.has('I', 'head') ? 'HTTP/2 200\n' : content;
  return writeOutput(call, body, name);
}

function wget(call: CommandCall): CommandResult {
  const options = parseOptions(call.args, WGET_OPTIONS_WITH_VALUE);
  const [url] = options.operands;
  if (url === undefined) return failure(1, 'wget: missing URL');
  const content = fetchText(call, url);
  if (typeof content !== 'string') return failure(4, `wget: ${content.message}`);
  return writeOutput(call, content, options.value('O', 'output-document') ?? baseName(url));
}

type Fetched = string | Extract<DownloadResult, { exitCode: number }>;

/** The CA of the cluster comes from the real server when the guest is connected to one; all else is simulated. */
async function fetchOverConnection(
  call: CommandCall,
  url: string,
  caFile: string | undefined,
): Promise<Fetched> {
  const { system } = call;
  const { connect } = system.input;
  const { origin, pathname } = URL.parse(url) ?? {};
  if (connect === undefined || origin === undefined || pathname !== '/cacerts')
    return fetchText(call, url);
  const caPem = caFile === undefined ? undefined : system.files.read(call.path(caFile));
  const transport = await connect({ caPem });
  const api = new ServerApi({ transport, server: origin, signal: system.signal });
  try {
    return await api.requestText('GET', pathname);
  } catch (error) {
    system.signal.throwIfAborted();
    return { exitCode: 7, message: error instanceof Error ? error.message : '' };
  } finally {
    await api.close();
  }
}

function fetchText(call: CommandCall, url: string): Fetched {
  const host = /^[a-z]+:\/\/([^/]+)/.exec(url)?.[1] ?? url;
  if (!call.system.network.isOnline)
    return { exitCode: 6, message: `Could not resolve host: ${host}` };
  const result = call.system.download(url);
  if (result === undefined)
    return INSTALL_SCRIPTS[host] ?? checksumListFor(url) ?? placeholderFor(url);
  return 'content' in result ? result.content : result;
}

/** The checksum list of a release, computed from the placeholders of its files. */
function checksumListFor(url: string): string | undefined {
  const [, release = '', architecture = ''] = /^(.*)\/sha256sum-([a-z0-9]+)\.txt$/.exec(url) ?? [];
  if (release === '') return undefined;
  const lines = listReleaseFiles(architecture).map((name) => {
    const sum = sha256Hex(new TextEncoder().encode(placeholderFor(`${release}/${name}`)));
    return `${sum}  ${name}\n`;
  });
  return lines.join('');
}

function writeOutput(call: CommandCall, content: string, name: string | undefined): CommandResult {
  if (name === undefined || name === '-') return { code: 0, out: content };
  const path = call.path(name);
  if (path.startsWith('/dev/')) return OK;
  const parent = path.replace(/\/[^/]*$/, '') || '/';
  if (!call.system.files.isDirectory(parent)) {
    return failure(23, `${call.name}: (23) Failure writing output to destination ${path}`);
  }
  call.system.files.write(path, content, { newMode: newFileMode(call.variables) });
  return OK;
}

const TAR_OPTIONS_WITH_VALUE = 'f file C directory strip-components'.split(' ');

function tar(call: CommandCall): CommandResult {
  const bundled = (call.args[0] ?? '').replace(/^-?/, '-');
  const options = parseOptions([bundled, ...call.args.slice(1)], TAR_OPTIONS_WITH_VALUE);
  const archive = options.value('f', 'file') ?? '-';
  const content = archive === '-' ? call.stdin : call.system.files.read(call.path(archive));
  const target = call.path(options.value('C', 'directory') ?? '.');
  const missing = content ? target : archive;
  if (!content || !call.system.files.isDirectory(target)) {
    return failure(2, `tar: ${missing}: Cannot open: No such file or directory`);
  }
  unpackArchive(call, content, target);
  return OK;
}

/** Creates the known files of an archive, selected by its download URL. */
function unpackArchive(call: CommandCall, content: string, target: string): void {
  const url = placeholderUrl(content);
  const known = KNOWN_ARCHIVES.find(({ pattern }) => pattern.test(url));
  if (known === undefined)
    call.system.recordWarning(`unpacked an archive with unknown content: ${url}`);
  for (const [path, file] of Object.entries(known?.files ?? {})) {
    call.system.files.makeDirectory(`${target}/${path}`.replace(/\/[^/]*$/, ''));
    call.system.files.write(`${target}/${path}`, file.content ?? content, { mode: file.mode });
  }
}

function gpg(call: CommandCall): CommandResult {
  const options = parseOptions(call.args, ['o', 'output']);
  const output = options.value('o', 'output');
  const [file] = options.operands;
  const content = file === undefined ? call.stdin : (call.system.files.read(call.path(file)) ?? '');
  return writeOutput(call, content, output);
}
