// SPDX-License-Identifier: Apache-2.0
// Tasks of a host: lists, status, log, abort.
import { splitToken } from '../access/permissions.ts';
import { parameterError, permissionError } from '../api-error.ts';
import { type Call, type Handlers, Paged } from '../core.ts';
import { splitList } from '../schema/formats.ts';
import { parseUpid, type TaskRecord } from '../tasks/engine.ts';

/** A token sees its own tasks; a user also sees those of the user's tokens. */
export function canSeeTask(call: Call, owner: string): boolean {
  return (
    owner === call.authUser ||
    (!call.authUser.includes('!') && splitToken(owner).user === call.authUser)
  );
}

function ownerFields(record: { readonly user: string }): Record<string, string> {
  const { user, token } = splitToken(record.user);
  return token === undefined ? { user } : { user, tokenid: token };
}

export function formatTask(record: TaskRecord): Record<string, unknown> {
  return {
    upid: record.upid,
    node: record.host,
    pid: record.pid,
    pstart: record.pstart,
    starttime: record.startTime,
    type: record.type,
    id: record.id,
    ...ownerFields(record),
    ...(record.status === undefined ? {} : { endtime: record.endTime, status: record.status }),
  };
}

function requireTaskAccess(call: Call, owner: string, privilege: string): void {
  if (canSeeTask(call, owner)) return;
  const path = `/nodes/${call.host}`;
  if (!call.isAllowed({ path, privileges: [privilege] }))
    throw permissionError(`${path}, ${privilege}`);
}

function findOnHost(call: Call): TaskRecord | undefined {
  const record = call.core.tasks.find(call.text('upid'));
  return record?.host === call.host ? record : undefined;
}

function requireTask(call: Call, privilege: string): TaskRecord {
  const parsed = parseUpid(call.text('upid'));
  if (parsed === undefined) throw parameterError({ upid: 'unable to parse worker upid' });
  const record = findOnHost(call);
  if (record === undefined) throw parameterError({ upid: 'no such task' });
  requireTaskAccess(call, parsed.user, privilege);
  return record;
}

function statusCategory(status: string | undefined): string {
  if (status === undefined) return 'unknown';
  if (status === 'OK') return 'ok';
  return status.startsWith('WARNINGS: ') ? 'warning' : 'error';
}

type Filter = (record: TaskRecord) => boolean;

function readFilters(call: Call): readonly Filter[] {
  const all = call.isAllowed({ path: `/nodes/${call.host}`, privileges: ['Sys.Audit'] });
  const type = call.optional('typefilter');
  const user = call.optional('userfilter');
  const vmid = call.optional('vmid');
  const since = call.optional('since');
  const until = call.optional('until');
  const kinds = splitList(call.text('statusfilter').toLowerCase());
  const errors = call.flag('errors');
  return [
    (record) => all || canSeeTask(call, record.user),
    (record) => type === undefined || record.type === type,
    (record) => user === undefined || record.user.toLowerCase().includes(user.toLowerCase()),
    (record) => vmid === undefined || record.id === vmid,
    (record) => since === undefined || record.startTime >= Number(since),
    (record) => until === undefined || record.startTime <= Number(until),
    (record) => kinds.length === 0 || kinds.includes(statusCategory(record.status)),
    (record) => !errors || statusCategory(record.status) === 'error',
  ];
}

function listTasks(call: Call): Paged {
  const source = call.optional('source') ?? 'archive';
  const { tasks } = call.core;
  const active = source === 'archive' ? [] : tasks.running(call.host).toReversed();
  const archive = source === 'active' ? [] : tasks.archive(call.host);
  const tests = readFilters(call);
  const rows = [...active, ...archive].filter((record) => tests.every((test) => test(record)));
  const start = call.integer('start');
  const limit = call.optional('limit') === undefined ? 50 : call.integer('limit');
  const end = limit === 0 ? rows.length : start + limit;
  // Proxmox lists a task without a status as RUNNING, in capitals.
  const listed = rows.slice(start, end).map((row) => ({ status: 'RUNNING', ...formatTask(row) }));
  return new Paged(listed, rows.length);
}

function taskStatus(call: Call): unknown {
  const record = requireTask(call, 'Sys.Audit');
  const { status: _status, endtime: _end, ...entry } = formatTask(record);
  return record.status === undefined
    ? { ...entry, status: 'running' }
    : { ...entry, status: 'stopped', exitstatus: record.status };
}

function taskLog(call: Call): Paged {
  const parsed = parseUpid(call.text('upid'));
  if (parsed === undefined) throw parameterError({ upid: 'unable to parse worker upid' });
  requireTaskAccess(call, parsed.user, 'Sys.Audit');
  const all = findOnHost(call)?.log;
  // For a missing log, Proxmox returns a single object instead of a list.
  if (all === undefined) {
    return new Paged({ n: 1, t: 'unable to open file - No such file or directory' }, 1);
  }
  const start = call.integer('start');
  const limit = call.optional('limit') === undefined ? 50 : call.integer('limit');
  const end = limit === 0 ? all.length : start + limit;
  const lines = all.slice(start, end).map((text, index) => ({ n: start + index + 1, t: text }));
  if (all.length === 0) return new Paged([{ n: 1, t: 'no content' }], 1);
  return new Paged(lines, all.length);
}

function stopTask(call: Call): null {
  const record = requireTask(call, 'Sys.Modify');
  call.core.tasks.stop(record.upid);
  return null;
}

export const TASK_HANDLERS: Handlers = {
  'GET /nodes/{node}/tasks': listTasks,
  'GET /nodes/{node}/tasks/{upid}': () => [{ name: 'log' }, { name: 'status' }],
  'GET /nodes/{node}/tasks/{upid}/status': taskStatus,
  'GET /nodes/{node}/tasks/{upid}/log': taskLog,
  'DELETE /nodes/{node}/tasks/{upid}': stopTask,
};
