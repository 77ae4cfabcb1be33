// SPDX-License-Identifier: Apache-2.0
import { ApiError } from '../api-error.ts';
import { formatScalar } from '../schema/verify.ts';
import { parseCliOptions } from './cli-options.ts';
import { callApi, followTask, isUpid, loadPerl, type ProgramCall, printError } from './program.ts';

const METHODS: Readonly<Record<string, string>> = {
  get: 'GET',
  create: 'POST',
  set: 'PUT',
  delete: 'DELETE',
};
const LOAD_MS = 700;
/** A call for another host: ssh, and Perl once more. */
const PROXY_MS = 1_000;
const LOOKUP_MS = 10_000;
const OUTPUT_OPTIONS = {
  'output-format': { type: 'string', enum: ['text', 'json', 'json-pretty', 'yaml'] },
  quiet: { type: 'boolean' },
  noproxy: { type: 'boolean' },
} as const;

/** `pvesh get|create|set|delete PATH [--name value …]`. */
export async function pvesh(program: ProgramCall): Promise<number> {
  await loadPerl(program, LOAD_MS);
  const [verb = '', given = '', ...words] = program.args;
  const usage = `pvesh ${verb} <api_path> [OPTIONS]`;
  try {
    const method = METHODS[verb];
    if (method === undefined) throw new ApiError(500, `unknown command '${verb}'\n`);
    return await run(program, { verb, method, path: `/${given.replace(/^\/+|\/+$/g, '')}`, words });
  } catch (error) {
    return printError(program.streams, error, usage);
  }
}

interface Order {
  readonly verb: string;
  readonly method: string;
  readonly path: string;
  readonly words: readonly string[];
}

async function run(program: ProgramCall, { verb, method, path, words }: Order): Promise<number> {
  const { streams, host } = program;
  const endpoint = program.findEndpoint(method, path);
  if (endpoint === undefined) {
    streams.err(`No '${verb}' handler defined for '${path}'\n`);
    return 1;
  }
  const { params, operands } = parseCliOptions(words, { ...endpoint.params, ...OUTPUT_OPTIONS });
  if (operands.length > 0) throw new ApiError(400, 'too many arguments\n');
  const { 'output-format': format = 'text', quiet, noproxy: _, ...parameters } = params;
  const order = {
    method,
    path: path.replace('/nodes/localhost', `/nodes/${host}`),
    params: parameters,
  };
  const node = /^\/nodes\/([^/]+)\//.exec(order.path)?.[1];
  if (node !== undefined && node !== host) return runOnOtherHost(program, order, node);
  const result = await callApi(program, order);
  if (method !== 'GET' && isUpid(result)) {
    await followTask(program, result);
    removeUploadedFile(program, parameters['tmpfilename']);
  }
  const isQuiet = formatScalar(quiet ?? '0') === '1';
  if (!isQuiet) streams.out(formatResult(result, formatScalar(format)));
  // Also when the task failed.
  return 0;
}

function removeUploadedFile(program: ProgramCall, path: unknown): void {
  if (typeof path === 'string') program.removeFile(path);
}

/** The output of the other host comes without line breaks; the result of a task is one string with its log. */
async function runOnOtherHost(
  program: ProgramCall,
  order: { readonly method: string; readonly path: string; readonly params: RootParams },
  node: string,
): Promise<number> {
  const { core, streams } = program;
  const target = core.state.hosts.get(node);
  if (target === undefined) {
    await loadPerl(program, LOOKUP_MS);
    throw new ApiError(
      500,
      `hostname lookup '${node}' failed - failed to get address info for: ${node}: Name or service not known\n`,
    );
  }
  await loadPerl(program, PROXY_MS);
  if (!target.online || !core.state.hasSsh) {
    throw new ApiError(
      500,
      `proxy handler failed: ssh: connect to host ${node} port 22: No route to host\n`,
    );
  }
  let collected = '';
  const remote: ProgramCall = {
    ...program,
    host: node,
    streams: { ...streams, out: (piece) => void (collected += piece.replaceAll('\n', '')) },
  };
  try {
    const result = await callApi(remote, order);
    if (isUpid(result) && order.method !== 'GET') await followTask(remote, result);
    const isPlain = collected === '' || result === null;
    const text = isPlain ? result : `${collected}${JSON.stringify(result)}`;
    streams.out(formatResult(text, 'json'));
    return 0;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new ApiError(error.status, `proxy handler failed: ${error.message}`, error.errors);
  }
}

type RootParams = Parameters<typeof callApi>[1]['params'];

function formatResult(result: unknown, format: string): string {
  if (result === null) return '';
  if (format === 'json') return `${JSON.stringify(sortKeys(result))}\n`;
  if (format === 'json-pretty') return `${JSON.stringify(sortKeys(result), undefined, 3)}\n`;
  if (typeof result === 'string') return `${result}\n`;
  throw new ApiError(500, `output format '${format}' is not simulated; use json\n`);
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, item]) => [key, sortKeys(item)]));
}
