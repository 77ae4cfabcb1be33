// SPDX-License-Identifier: Apache-2.0
import { ApiError } from '../api-error.ts';
import { formatScalar, type ParamValue } from '../schema/verify.ts';
import { parseCliOptions } from './cli-options.ts';
import {
  callApi,
  followTask,
  isSuccess,
  isUpid,
  loadPerl,
  type ProgramCall,
  printError,
} from './program.ts';

const LOAD_MS = 600;
const MAX_STDIN_BYTES = 2 ** 20;

interface Verb {
  readonly method: string;
  /** Below /nodes/HOST/qemu. */
  readonly path: (id: string) => string;
  /** Names of the words after the verb; the first is the VM id. */
  readonly words: readonly string[];
  /** False: exit code 0 also when the task failed. */
  readonly reportsTask?: boolean;
}

const power = (name: string): Verb => ({
  method: 'POST',
  path: (id) => `/${id}/status/${name}`,
  words: ['vmid'],
});

const VERBS: Readonly<Record<string, Verb>> = {
  create: { method: 'POST', path: () => '', words: ['vmid'] },
  clone: { method: 'POST', path: (id) => `/${id}/clone`, words: ['vmid', 'newid'] },
  destroy: { method: 'DELETE', path: (id) => `/${id}`, words: ['vmid'] },
  start: power('start'),
  stop: power('stop'),
  shutdown: power('shutdown'),
  reboot: power('reboot'),
  reset: power('reset'),
  template: {
    method: 'POST',
    path: (id) => `/${id}/template`,
    words: ['vmid'],
    reportsTask: false,
  },
  resize: {
    method: 'PUT',
    path: (id) => `/${id}/resize`,
    words: ['vmid', 'disk', 'size'],
    reportsTask: false,
  },
  set: { method: 'PUT', path: (id) => `/${id}/config`, words: ['vmid'] },
};

/** qm sees only the VMs of its host. */
export async function qm(program: ProgramCall): Promise<number> {
  await loadPerl(program, LOAD_MS);
  const [verb = '', ...words] = program.args;
  const usage = `qm ${verb} <vmid> [OPTIONS]`;
  try {
    if (verb === 'guest' || verb === 'agent') return await runGuest(program, verb, words);
    const printed = PRINTERS[verb];
    if (printed !== undefined) {
      program.streams.out(await printed(program, words[0] ?? ''));
      return 0;
    }
    const found = VERBS[verb];
    if (found === undefined) throw new ApiError(500, `unknown command '${verb}'\n`);
    return await runVerb(program, found, words);
  } catch (error) {
    return printError(program.streams, error, usage);
  }
}

async function runVerb(
  program: ProgramCall,
  verb: Verb,
  words: readonly string[],
): Promise<number> {
  const base = `/nodes/${program.host}/qemu`;
  const endpoint = program.findEndpoint(verb.method, `${base}${verb.path('100')}`);
  const { params, operands } = parseCliOptions(words, endpoint?.params ?? {}, verb.words.length);
  const { vmid = '', ...named } = nameOperands(verb.words, operands);
  const isCreate = verb.path('') === '';
  const result = await callApi(program, {
    method: verb.method,
    path: `${base}${verb.path(vmid)}`,
    params: { ...params, ...named, ...(isCreate && { vmid }) },
  });
  if (!isUpid(result)) return 0;
  const record = await followTask(program, result);
  return isSuccess(record) || verb.reportsTask === false ? 0 : 255;
}

function nameOperands(
  names: readonly string[],
  operands: readonly string[],
): Readonly<Record<string, string>> {
  if (operands.length > names.length) throw new ApiError(400, 'too many arguments\n');
  return Object.fromEntries(names.map((name, index) => [name, operands[index] ?? '']));
}

/** `qm guest exec|exec-status|cmd ID …`, `qm agent ID CMD`. */
async function runGuest(
  program: ProgramCall,
  verb: string,
  words: readonly string[],
): Promise<number> {
  const [action = '', id = '', ...rest] = verb === 'agent' ? ['cmd', ...words] : words;
  const path = `/nodes/${program.host}/qemu/${id}/agent`;
  switch (action) {
    case 'exec':
      return execInGuest(program, path, rest);
    case 'exec-status':
      return printJson(
        program,
        await callApi(program, {
          method: 'GET',
          path: `${path}/exec-status`,
          params: { pid: rest[0] ?? '' },
        }),
      );
    case 'cmd':
      return runAgentCommand(program, path, rest[0] ?? '');
    default:
      throw new ApiError(500, `unknown command 'guest ${action}'\n`);
  }
}

async function runAgentCommand(program: ProgramCall, path: string, name: string): Promise<number> {
  const isRead = name.startsWith('get-') || name.startsWith('network-get') || name === 'info';
  const order = { method: isRead ? 'GET' : 'POST', path: `${path}/${name}`, params: {} };
  const data = await callApi(program, order);
  const result = typeof data === 'object' && data !== null && 'result' in data ? data.result : data;
  return name === 'ping' ? 0 : printJson(program, result);
}

const EXEC_OPTIONS = {
  timeout: { type: 'integer' },
  synchronous: { type: 'boolean' },
  'pass-stdin': { type: 'boolean' },
} as const;
const EXEC_POLL_MS = 1_000;
const EXEC_TIMEOUT_S = 30;

async function execInGuest(
  program: ProgramCall,
  path: string,
  words: readonly string[],
): Promise<number> {
  const end = words.indexOf('--');
  const options = parseCliOptions(end < 0 ? words : words.slice(0, end), EXEC_OPTIONS);
  const command = end < 0 ? options.operands : words.slice(end + 1);
  const isSynchronous = formatScalar(options.params['synchronous'] ?? '1') === '1';
  const { timeout } = options.params;
  if (!isSynchronous && timeout !== undefined)
    throw new ApiError(400, "parameter 'timeout' not allowed with synchronous=0\n");
  const started = await callApi(program, {
    method: 'POST',
    path: `${path}/exec`,
    params: { command, ...readInput(program, options.params['pass-stdin']) },
  });
  if (!isSynchronous) return printJson(program, started);
  return waitForGuest(program, { path, started, timeoutS: Number(timeout ?? EXEC_TIMEOUT_S) });
}

/** Each byte is one character of the parameter. */
function readInput({ streams }: ProgramCall, flag: ParamValue | undefined) {
  if (flag === undefined || formatScalar(flag) !== '1') return {};
  const bytes = Buffer.from(streams.stdin.text, 'utf8');
  streams.stdin.text = '';
  if (bytes.length > MAX_STDIN_BYTES)
    throw new ApiError(500, "'input-data' (STDIN) is limited to 1 MiB, aborting\n");
  return { 'input-data': bytes.toString('latin1') };
}

async function waitForGuest(
  program: ProgramCall,
  run: { readonly path: string; readonly started: unknown; readonly timeoutS: number },
): Promise<number> {
  const { core, streams } = program;
  const { started } = run;
  const pid = typeof started === 'object' && started !== null && 'pid' in started ? started.pid : 0;
  for (let waited = 0; run.timeoutS === 0 || waited < run.timeoutS; waited += 1) {
    const order = { method: 'GET', path: `${run.path}/exec-status`, params: { pid: String(pid) } };
    const status = await callApi(program, order);
    const isDone =
      typeof status === 'object' && status !== null && 'exited' in status && status.exited === 1;
    if (isDone) return printJson(program, status);
    await core.state.clock.sleep(EXEC_POLL_MS / core.state.speed);
  }
  streams.err('timeout reached, returning pid\n');
  return printJson(program, { pid });
}

function printJson({ streams }: ProgramCall, value: unknown): number {
  streams.out(`${JSON.stringify(value, undefined, 3)}\n`);
  return 0;
}

type Printer = (program: ProgramCall, id: string) => Promise<string>;

const PRINTERS: Readonly<Record<string, Printer>> = {
  list: async (program) => formatList(await readObjects(program, '')),
  status: async (program, id) => {
    const [status = {}] = await readObjects(program, `/${id}/status/current`);
    return `status: ${status['qmpstatus'] ?? status['status'] ?? 'unknown'}\n`;
  },
  config: async (program, id) => {
    const [config = {}] = await readObjects(program, `/${id}/config`);
    return Object.entries(config)
      .filter(([name]) => name !== 'digest')
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, value]) => `${name}: ${name === 'description' ? encodeText(value) : value}\n`)
      .join('');
  },
};

type Row = Readonly<Record<string, string>>;

async function readObjects(program: ProgramCall, subpath: string): Promise<readonly Row[]> {
  const path = `/nodes/${program.host}/qemu${subpath}`;
  const data = await callApi(program, { method: 'GET', path, params: {} });
  return [data].flat().map((entry) => {
    const fields = typeof entry === 'object' && entry !== null ? Object.entries(entry) : [];
    return Object.fromEntries(fields.map(([name, value]) => [name, String(value)]));
  });
}

const MIB = 2 ** 20;

/** Columns have a minimum width; nothing is cut. */
function formatList(rows: readonly Row[]): string {
  if (rows.length === 0) return '';
  const line = (cells: readonly string[]) => {
    const [id = '', name = '', status = '', memory = '', disk = '', pid = ''] = cells;
    return `${id.padStart(10)} ${name.padEnd(20)} ${status.padEnd(10)} ${memory.padEnd(10)} ${disk.padStart(12)} ${pid.padEnd(10)}\n`;
  };
  const header = line(['VMID', 'NAME', 'STATUS', 'MEM(MB)', 'BOOTDISK(GB)', 'PID']);
  const sorted = rows.toSorted((a, b) => Number(a['vmid']) - Number(b['vmid']));
  const body = sorted.map((row) =>
    line([
      row['vmid'] ?? '',
      row['name'] ?? `VM ${row['vmid'] ?? ''}`,
      row['status'] ?? '',
      String(Math.round(Number(row['maxmem'] ?? 0) / MIB)),
      (Number(row['maxdisk'] ?? 0) / MIB / 1024).toFixed(2),
      row['pid'] ?? '0',
    ]),
  );
  return [header, ...body].join('');
}

/** As in the configuration file: percent-encoded, on one line. */
function encodeText(text: string): string {
  return encodeURIComponent(text).replaceAll('%20', ' ').replaceAll('%2C', ',');
}
