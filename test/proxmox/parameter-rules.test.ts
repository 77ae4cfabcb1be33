// SPDX-License-Identifier: Apache-2.0
// Compares the simulator's parameter verification with an independent implementation of the rules: random calls of
// every endpoint, with valid and invalid values, must fail for the same parameters with the same messages.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { advanceUntilSettled } from '../../src/ports/fakes/advance-until-settled.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import { findParameterErrors } from '../../src/proxmox/testing/parameter-rules.ts';
import { isChecked } from '../../src/proxmox/testing/value-rules.ts';
import {
  type ApiVersion,
  type EndpointFact,
  endpointsOf,
  type ParamFact,
  PROPERTY_STRINGS,
} from '../../src/proxmox/wire-facts/index.ts';
import { createProxmoxSim, defaultCluster } from '../../src/sim/proxmox/index.ts';

/** The rules have the texts of 9.2; that of a dependent property was another one in 8.4. */
function textsOf(
  version: ApiVersion,
  errors: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  if (version !== '8.4') return errors;
  const entries = Object.entries(errors).map(([name, text]) => [
    name,
    text
      .replaceAll(
        /missing property required by ('[^']*')/g,
        'missing property - $1 requires this property',
      )
      .replaceAll(
        /(storage ID '.?') cannot be shorter than 2 characters/g,
        '$1 contains illegal characters',
      ),
  ]);
  return Object.fromEntries(entries);
}

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
const IN_PATH: Readonly<Record<string, string>> = {
  node: 'pve1',
  vmid: '100',
  storage: 'local',
  volume: 'iso/debian.iso',
  userid: 'root@pam',
  snapname: 'snap1',
  iface: 'vmbr0',
  sid: 'vm:100',
};

async function createRootCaller(version: ApiVersion) {
  const clock = new VirtualClock();
  const cluster = { ...defaultCluster(1), vms: [{ id: 100, host: 'pve1' }] };
  const sim = createProxmoxSim({ clock, version, random: new SeededRandom(3), cluster });
  const login = await sim.handle({
    method: 'POST',
    target: '/api2/json/access/ticket',
    headers: FORM,
    body: 'username=root%40pam&password=simulated',
  });
  const { ticket, CSRFPreventionToken } = JSON.parse(login.body).data;
  const headers = {
    ...FORM,
    authorization: `PVEAuthCookie=${encodeURIComponent(ticket)}`,
    csrfpreventiontoken: CSRFPreventionToken,
  };
  return async (method: string, path: string, form: string) => {
    const inQuery = method === 'GET' || method === 'DELETE';
    const target = `/api2/json${path}${inQuery ? `?${form}` : ''}`;
    const request = { method, target, headers, ...(inQuery ? {} : { body: form }) };
    const response = await advanceUntilSettled(clock, sim.handle(request));
    return { status: response.status, errors: JSON.parse(response.body || '{}').errors };
  };
}

/** Values that are valid for some parameters and invalid for most. */
const SAMPLE_VALUES = [
  '0|1|-1|15|16|100|99|1.5|1e3|1000000000|true|yes',
  'a|ab|a_b|a b|a;b|A.b-c|-a|a@b|a@pve|a@pve!t|a/b|a:b|ä',
  'local|local:1|local:0.5|local:iso/x.iso|none|cloudinit|/dev/sda|x:y:z',
  '10.0.0.1|10.0.0.1/24|10.0.0.1/33|fd00::1|fd00::1/64|dhcp|auto',
  '10G|10GB|+5G|5|aa:bb:cc:dd:ee:ff|11:22:33:44:55:66|https://a/b|ftp://a',
  `|${'x'.repeat(70)}|${'x'.repeat(300)}`,
].flatMap((line) => line.split('|'));

const sampleValue = fc.constantFrom(...SAMPLE_VALUES);

function valueArbitrary(fact: ParamFact): fc.Arbitrary<string> {
  const known = (fact.enum ?? []).map(String);
  const edges = [fact.minimum, fact.maximum]
    .flatMap((edge) => (edge === undefined ? [] : [edge - 1, edge, edge + 1]))
    .map(String);
  const own = [...known, ...edges];
  const properties = PROPERTY_STRINGS[fact.propertyString ?? ''];
  return fc.oneof(
    sampleValue,
    ...(own.length === 0 ? [] : [fc.constantFrom(...own)]),
    ...(properties === undefined ? [] : [propertyStringArbitrary(properties)]),
  );
}

function propertyStringArbitrary(
  fields: Readonly<Record<string, ParamFact>>,
): fc.Arbitrary<string> {
  const keys = [...Object.keys(fields), 'nosuch'];
  const part = fc.constantFrom(...keys).chain((key) => {
    const value = valueArbitrary(fields[key] ?? {}).filter((text) => !text.includes(','));
    return fc.oneof(
      { arbitrary: value.map((text) => `${key}=${text}`), weight: 6 },
      { arbitrary: value, weight: 1 },
    );
  });
  return fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join(','));
}

interface RandomCall {
  readonly row: EndpointFact;
  readonly given: Readonly<Record<string, string>>;
}

function callArbitrary(rows: readonly EndpointFact[]): fc.Arbitrary<RandomCall> {
  return fc.constantFrom(...rows).chain((row) => {
    const names = Object.keys(row.params).filter((name) => !row.path.includes(`{${name}}`));
    const pair = fc.constantFrom(...names, 'nosuch', 'net99').chain((name) => {
      const value = valueArbitrary(row.params[name] ?? {});
      return fc.tuple(fc.constant(name.replace('[n]', '0')), value);
    });
    return fc
      .array(pair, { maxLength: 6 })
      .map((pairs) => ({ row, given: Object.fromEntries(pairs) }));
  });
}

/** Excludes endpoints that verify parameters elsewhere, or check the user before the parameters. */
function isComparable({ path, params }: EndpointFact): boolean {
  if (path.endsWith('/upload') || path.endsWith('/agent')) return false;
  return !('userid' in params) || path.includes('{userid}');
}

/** The error lines of one property string have no defined order. */
function sortErrorLines(errors: Readonly<Record<string, string>>): unknown {
  const entries = Object.entries(errors).map(([name, text]) => [name, text.split('\n').sort()]);
  return Object.fromEntries(entries);
}

describe.each(['8.4', '9.2'] as const)('random calls on the simulator of %s', (version) => {
  const rows = endpointsOf(version).filter(isComparable);

  it('fail exactly for the parameters that the rules refuse', async () => {
    const seen = { refused: 0, passed: 0 };
    await fc.assert(
      fc.asyncProperty(callArbitrary(rows), async ({ row, given }) => {
        const facts = Object.keys(given).flatMap(
          (name) => row.params[name.replace(/0$/, '[n]')] ?? row.params[name] ?? [],
        );
        fc.pre(facts.every(isChecked));
        const names = [...row.path.matchAll(/\{([^}]+)\}/g)].map(([, name = '']) => name);
        const inPath = Object.fromEntries(names.map((name) => [name, IN_PATH[name] ?? 'xx']));
        const path = row.path.replaceAll(/\{([^}]+)\}/g, (_, name: string) => inPath[name] ?? '');
        const form = Object.entries(given)
          .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
          .join('&');
        const rules = textsOf(version, findParameterErrors(row, { ...given, ...inPath }));
        // A new cluster for each call: an earlier call can change root's password.
        const { status, errors } = await (await createRootCaller(version))(row.method, path, form);
        if (Object.keys(rules).length === 0) {
          seen.passed += 1;
          return;
        }
        seen.refused += 1;
        expect([status, sortErrorLines(errors ?? {})]).toEqual([400, sortErrorLines(rules)]);
      }),
      { numRuns: 1_200, seed: 7 },
    );
    expect(seen.refused).toBeGreaterThan(400);
    expect(seen.passed).toBeGreaterThan(50);
  });
});
