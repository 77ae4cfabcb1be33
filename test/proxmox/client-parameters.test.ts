// SPDX-License-Identifier: Apache-2.0
// Every endpoint and parameter that the client uses, on the simulator of both versions: a value that is accepted,
// and one that is refused with the message of the parameter rules. The client's own requests are checked against the
// same rules wherever a test sends one (see check-request.ts), which also refuses a parameter that has no case here.
import { Buffer } from 'node:buffer';
import { describe, expect, it } from 'vitest';
import { advanceUntilSettled } from '../../src/ports/fakes/advance-until-settled.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import type {
  ParameterCase,
  ParameterCaseValue,
} from '../../src/proxmox/testing/parameter-case.ts';
import { type EndpointCases, PARAMETER_CASES } from '../../src/proxmox/testing/parameter-cases.ts';
import { findParameterErrors } from '../../src/proxmox/testing/parameter-rules.ts';
import { type ApiVersion, endpointsOf } from '../../src/proxmox/wire-facts/index.ts';
import { createProxmoxSim, defaultCluster, type SimRequest } from '../../src/sim/proxmox/index.ts';

type Call = Readonly<Record<string, ParameterCaseValue>>;

interface CallResult {
  readonly status: number;
  readonly reason: string;
  readonly errors: Readonly<Record<string, string>>;
}

const SAMPLE = 'local:iso/debian.iso';
const GIB = 2 ** 30;

/** Uses a session of root, so that errors are about parameters, not about missing privileges. */
async function createCaller(version: ApiVersion) {
  const clock = new VirtualClock();
  const base = defaultCluster(2);
  const config = {
    name: 'a',
    memory: '512',
    agent: '1',
    scsihw: 'virtio-scsi-pci',
    scsi0: 'local-lvm:2',
    net0: 'virtio,bridge=vmbr0',
  };
  const sim = createProxmoxSim({
    clock,
    version,
    random: new SeededRandom(5),
    cluster: {
      ...base,
      storages: base.storages.map((storage) =>
        storage.name === 'local'
          ? { ...storage, files: [{ name: SAMPLE.replace('local:', ''), size: GIB }] }
          : storage,
      ),
      pools: [{ id: 'mine' }],
      urls: ['http', 'https'].map((scheme) => ({
        url: `${scheme}://images.example/x.qcow2`,
        size: GIB,
      })),
      vms: [
        { id: 100, host: 'pve1', config },
        { id: 101, host: 'pve1', image: 'noble-with-agent.qcow2', running: true, config },
        { id: 900, host: 'pve1', template: true, config },
      ],
    },
  });
  await clock.advance(300_000);
  const send = async (request: SimRequest) => advanceUntilSettled(clock, sim.handle(request));
  const session = await send({
    method: 'POST',
    target: '/api2/json/access/ticket',
    headers: { 'content-type': FORM },
    body: 'username=root%40pam&password=simulated',
  });
  const { ticket, CSRFPreventionToken } = JSON.parse(session.body).data;
  const root = {
    authorization: `PVEAuthCookie=${encodeURIComponent(ticket)}`,
    csrfpreventiontoken: CSRFPreventionToken,
  };
  return async (name: string, call: Call): Promise<CallResult> => {
    const request = buildRequest(name, await withExistingIds(call, send, root));
    const response = await send({ ...request, headers: { ...root, ...request.headers } });
    const body = response.body.startsWith('{') ? JSON.parse(response.body) : {};
    return { status: response.status, reason: response.reason, errors: body.errors ?? {} };
  };
}

const FORM = 'application/x-www-form-urlencoded';

type SendRequest = (request: SimRequest) => Promise<{ readonly body: string }>;

/** Replaces a valid UPID or pid of a case by an existing one. */
async function withExistingIds(
  call: Call,
  send: SendRequest,
  root: Readonly<Record<string, string>>,
): Promise<Call> {
  const from = async (below: string, body = '') => {
    const target = `/api2/json/nodes/pve1/qemu/${below}`;
    const headers = { ...root, ...(body === '' ? {} : { 'content-type': FORM }) };
    return JSON.parse((await send({ method: 'POST', target, headers, body })).body).data;
  };
  if (call['pid'] === '1') {
    return { ...call, pid: String((await from('101/agent/exec', 'command=%2Fbin%2Ftrue')).pid) };
  }
  if (call['upid'] === undefined || call['upid'] === 'UPID:pve1') return call;
  return { ...call, upid: await from('100/status/stop') };
}

function buildRequest(name: string, call: Call): SimRequest {
  const [method = '', template = ''] = name.split(' ');
  const rest: Record<string, ParameterCaseValue> = { ...call };
  const path = template.replaceAll(/\{([^}]+)\}/g, (_, parameter: string) => {
    const value = String(rest[parameter]);
    delete rest[parameter];
    return encodeURIComponent(value);
  });
  const target = `/api2/json${path}`;
  if (template.endsWith('/upload')) return { method, target, ...multipart(rest) };
  const form = Object.entries(rest)
    .flatMap(([key, value]) => [value].flat().map((one) => [key, one] as const))
    .map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`)
    .join('&');
  if (method === 'GET' || method === 'DELETE') return { method, target: `${target}?${form}` };
  return { method, target, body: form, headers: { 'content-type': FORM } };
}

function multipart(fields: Call) {
  const part = (key: string, rest: string) =>
    `--b\r\nContent-Disposition: form-data; name="${key}"${rest}\r\n`;
  const { filename, ...plain } = fields;
  const parts = Object.entries(plain).map(([key, value]) => part(key, `\r\n\r\n${String(value)}`));
  const file = part('filename', `; filename="${String(filename)}"\r\n\r\nx`);
  return {
    body: Buffer.from([...parts, file, '--b--\r\n'].join('')),
    headers: { 'content-type': 'multipart/form-data; boundary=b' },
  };
}

const indexedName = (name: string) => name.replace('[n]', '0');

/** Further parameters that a call with this parameter needs. */
const COMPANIONS: Readonly<Record<string, Call>> = {
  checksum: { 'checksum-algorithm': 'sha256' },
  'checksum-algorithm': { checksum: 'ab'.repeat(32) },
  hugepages: { numa: '1' },
  keephugepages: { hugepages: 'any' },
  'numa[n]': { numa: '1' },
};

function callWith(cases: EndpointCases, name: string, value: ParameterCaseValue): Call {
  return { ...cases.given, ...COMPANIONS[name], [indexedName(name)]: value };
}

/** Restore parameters, aliases, options that run as root on the host, and options that block deletion. */
const NEVER_SENT = [
  'archive bwlimit force live-restore unique import-working-storage',
  'autostart bootdisk cdrom smp storage start ha-managed',
  'args hookscript ivshmem parallel[n] virtiofs[n]',
  'lock template unused[n]',
].flatMap((line) => line.split(' '));

interface Row {
  readonly endpoint: string;
  readonly name: string;
  readonly cases: EndpointCases;
  readonly one: ParameterCase;
}

const ROWS: readonly Row[] = Object.entries(PARAMETER_CASES).flatMap(([endpoint, cases]) =>
  Object.entries(cases.parameters).map(([name, one]) => ({ endpoint, name, cases, one })),
);

describe.each(['8.4', '9.2'] as const)('parameters of the client on %s', (version) => {
  const facts = new Map(endpointsOf(version).map((fact) => [`${fact.method} ${fact.path}`, fact]));
  const rulesFor = (endpoint: string, call: Call) => {
    const fact = facts.get(endpoint);
    if (fact === undefined) throw new Error(`${version} has no ${endpoint}`);
    return findParameterErrors(fact, call);
  };

  it.each(ROWS)('$endpoint accepts a valid $name', async ({ endpoint, name, cases, one }) => {
    const call = callWith(cases, name, one.accept);
    if (one.since === '9.2' && version === '8.4') {
      const { status, errors } = await (await createCaller(version))(endpoint, call);
      expect([status, errors]).toEqual([400, rulesFor(endpoint, call)]);
      return;
    }
    expect(rulesFor(endpoint, call)).toEqual({});
    const { status, reason, errors } = await (await createCaller(version))(endpoint, call);
    expect({ status, reason, errors }).toEqual({ status: 200, reason: 'OK', errors: {} });
  });

  it.each(ROWS)('$endpoint refuses an invalid $name', async ({ endpoint, name, cases, one }) => {
    const call = callWith(cases, name, one.refuse);
    const { status, reason, errors } = await (await createCaller(version))(endpoint, call);
    if (one.response !== undefined) {
      expect(`${status} ${reason}`).toBe(one.response);
      return;
    }
    expect(`${status} ${reason}`).toBe('400 Parameter verification failed.');
    if (one.error !== undefined) {
      expect(errors).toEqual({ [indexedName(name)]: one.error });
      return;
    }
    const rules = rulesFor(endpoint, call);
    expect(Object.keys(rules)).not.toEqual([]);
    expect(errors).toEqual(rules);
  });

  it('cover every VM option except those that are never sent', () => {
    const known = facts.get('POST /nodes/{node}/qemu')?.params ?? {};
    const cases = PARAMETER_CASES['POST /nodes/{node}/qemu']?.parameters ?? {};
    const missing = Object.keys(known).filter((name) => cases[name] === undefined);
    expect(missing.filter((name) => !NEVER_SENT.includes(name))).toEqual([]);
  });

  it('cover every path parameter of the endpoints', () => {
    for (const [endpoint, { given, parameters }] of Object.entries(PARAMETER_CASES)) {
      for (const name of Object.keys(given)) {
        expect([endpoint, name in parameters || name === 'description']).toEqual([endpoint, true]);
      }
    }
  });
});
