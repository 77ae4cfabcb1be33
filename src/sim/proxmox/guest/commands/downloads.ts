// SPDX-License-Identifier: Apache-2.0
// curl, wget, tar and the stand-ins for what they bring. A stand-in is a text that names its URL: the guest can
// store, copy and install it, and a checksum of it is taken as right, since nobody here knows the real bytes.
import type { DownloadAnswer } from '../guest-types.ts';
import {
  type Call,
  type CommandTable,
  failure,
  OK,
  type Outcome,
  readOptions,
} from '../shell/command.ts';
import { newFileMode } from '../shell/redirects.ts';
import { baseName } from '../system/files.ts';
import { sha256Hex } from '../system/sha256.ts';
import { ARCHIVES, INSTALL_SCRIPTS, releaseFiles } from './vendor.ts';

const MARK = '\u007fsimulated download of ';

export const DOWNLOADS: CommandTable = { curl, wget, tar, unzip: () => OK, gpg };

export function standIn(url: string): string {
  return `${MARK}${url}\n`;
}

export function isStandIn(text: string): boolean {
  return text.includes(MARK);
}

export function urlOfStandIn(text: string): string {
  return /simulated download of (\S+)/.exec(text)?.[1] ?? '';
}

const CURL_VALUED =
  'o output H header w write-out m max-time retry retry-delay connect-timeout X request d data u user A cacert E cert key x proxy resolve output-dir retry-max-time'.split(
    ' ',
  );
const WGET_VALUED =
  'O output-document T timeout t tries P directory-prefix o header ca-certificate'.split(' ');

function curl(call: Call): Outcome {
  const options = readOptions(call.args, CURL_VALUED);
  const [url] = options.operands;
  if (url === undefined) return failure(2, 'curl: no URL specified!');
  const content = fetchText(call, url);
  if (typeof content !== 'string')
    return failure(content.exitCode, `curl: (${content.exitCode}) ${content.message}`);
  const name = options.has('O', 'remote-name') ? baseName(url) : options.value('o', 'output');
  const body = options.has('I', 'head') ? 'HTTP/2 200\n' : content;
  return deliver(call, body, name);
}

function wget(call: Call): Outcome {
  const options = readOptions(call.args, WGET_VALUED);
  const [url] = options.operands;
  if (url === undefined) return failure(1, 'wget: missing URL');
  const content = fetchText(call, url);
  if (typeof content !== 'string') return failure(4, `wget: ${content.message}`);
  return deliver(call, content, options.value('O', 'output-document') ?? baseName(url));
}

function fetchText(
  call: Call,
  url: string,
): string | Extract<DownloadAnswer, { exitCode: number }> {
  const host = /^[a-z]+:\/\/([^/]+)/.exec(url)?.[1] ?? url;
  if (!call.system.network.reachesOut)
    return { exitCode: 6, message: `Could not resolve host: ${host}` };
  const answer = call.system.download(url);
  if (answer === undefined) return INSTALL_SCRIPTS[host] ?? checksumsAt(url) ?? standIn(url);
  return 'content' in answer ? answer.content : answer;
}

/** The list of checksums beside a release's files, of the stand-ins that those files are here. */
function checksumsAt(url: string): string | undefined {
  const [, release = '', architecture = ''] = /^(.*)\/sha256sum-([a-z0-9]+)\.txt$/.exec(url) ?? [];
  if (release === '') return undefined;
  const lines = releaseFiles(architecture).map((name) => {
    const sum = sha256Hex(new TextEncoder().encode(standIn(`${release}/${name}`)));
    return `${sum}  ${name}\n`;
  });
  return lines.join('');
}

function deliver(call: Call, content: string, name: string | undefined): Outcome {
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

const TAR_VALUED = 'f file C directory strip-components'.split(' ');

function tar(call: Call): Outcome {
  const bundled = (call.args[0] ?? '').replace(/^-?/, '-');
  const options = readOptions([bundled, ...call.args.slice(1)], TAR_VALUED);
  const archive = options.value('f', 'file') ?? '-';
  const content = archive === '-' ? call.stdin : call.system.files.read(call.path(archive));
  const target = call.path(options.value('C', 'directory') ?? '.');
  const missing = content ? target : archive;
  if (!content || !call.system.files.isDirectory(target)) {
    return failure(2, `tar: ${missing}: Cannot open: No such file or directory`);
  }
  unpack(call, content, target);
  return OK;
}

/** What is known of an archive, by the URL that it came from; nothing of an unknown one. */
function unpack(call: Call, content: string, target: string): void {
  const url = urlOfStandIn(content);
  const known = ARCHIVES.find(({ pattern }) => pattern.test(url));
  if (known === undefined) call.system.warn(`an archive of unknown content was unpacked: ${url}`);
  for (const [path, file] of Object.entries(known?.files ?? {})) {
    call.system.files.makeDirectory(`${target}/${path}`.replace(/\/[^/]*$/, ''));
    call.system.files.write(`${target}/${path}`, file.content ?? content, { mode: file.mode });
  }
}

function gpg(call: Call): Outcome {
  const options = readOptions(call.args, ['o', 'output']);
  const output = options.value('o', 'output');
  const [file] = options.operands;
  const content = file === undefined ? call.stdin : (call.system.files.read(call.path(file)) ?? '');
  return deliver(call, content, output);
}
