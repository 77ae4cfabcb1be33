// SPDX-License-Identifier: Apache-2.0
// Checks each request that the client sends in a test: the parameter rules of both API versions must accept it, and every
// parameter must have a case in PARAMETER_CASES.
import type { RecordedRequest } from '../../ports/fakes/scripted-transport.ts';
import type { ApiVersion } from '../wire-facts/index.ts';
import { PARAMETER_CASES } from './parameter-cases.ts';
import {
  findEndpoint,
  findParameterErrors,
  findSchemaName,
  type ParameterValues,
} from './parameter-rules.ts';

const VERSIONS: readonly ApiVersion[] = ['8.4', '9.2'];

/** For example `POST /nodes/{node}/qemu`, with its parameters; numbered ones as `net[n]`. */
export interface CheckedRequest {
  readonly endpoint: string;
  readonly parameters: readonly string[];
}

/** Throws if Proxmox would refuse the request, or if a parameter has no test case. */
export function checkRequest(request: RecordedRequest): CheckedRequest {
  const [checked] = VERSIONS.map((version) => checkForVersion(version, request));
  if (checked === undefined) throw new Error('VERSIONS is empty');
  const covered = PARAMETER_CASES[checked.endpoint]?.parameters;
  const uncovered = checked.parameters.filter((name) => covered?.[name] === undefined);
  if (covered !== undefined && uncovered.length === 0) return checked;
  throw new Error(
    `PARAMETER_CASES has no test case for ${checked.endpoint}: ${uncovered.join(', ')}`,
  );
}

function checkForVersion(version: ApiVersion, request: RecordedRequest): CheckedRequest {
  const path = request.url.pathname.replace('/api2/json', '');
  const found = findEndpoint(version, request.method, path);
  const name = `${request.method} ${path}`;
  if (found === undefined) throw new Error(`Proxmox VE ${version} has no endpoint ${name}`);
  const { endpoint, inPath } = found;
  const sent = parseParameters(request);
  const problems = findParameterErrors(endpoint, { ...sent, ...inPath });
  if (Object.keys(problems).length > 0) {
    throw new Error(`Proxmox VE ${version} refuses ${name}: ${JSON.stringify(problems)}`);
  }
  const names = Object.keys(sent).map((one) => findSchemaName(endpoint.params, one) ?? one);
  return {
    endpoint: `${endpoint.method} ${endpoint.path}`,
    parameters: [...new Set([...names, ...Object.keys(inPath)])].sort(),
  };
}

export function parseParameters(request: RecordedRequest): ParameterValues {
  const type = request.headers['content-type'] ?? '';
  const boundary = /^multipart\/form-data; ?boundary="?([^"]+)/.exec(type)?.[1];
  if (boundary !== undefined) return parseMultipart(request.text, boundary);
  // The server merges query and body.
  return { ...parseForm(request.url.search.slice(1)), ...parseForm(request.text) };
}

/** Like Proxmox: splits on `&` and `;` and drops all after a second `=`, so values that are not encoded break. */
function parseForm(text: string): ParameterValues {
  const given: Record<string, string | string[]> = {};
  for (const pair of text.split(/[&;]/).filter((one) => one !== '')) {
    const [name = '', value = ''] = pair.split('=').map((part) => decodeURIComponent(part));
    const known = given[name];
    given[name] = known === undefined ? value : [known, value].flat();
  }
  return given;
}

function parseMultipart(text: string, boundary: string): ParameterValues {
  const fields = text.split(`--${boundary}`).flatMap((part) => {
    const [head = '', ...body] = part.split('\r\n\r\n');
    const name = /; name="([^"]*)"/.exec(head)?.[1];
    const fileName = /; filename="([^"]*)"/.exec(head)?.[1];
    if (name === undefined) return [];
    return [[name, fileName ?? body.join('\r\n\r\n').replace(/\r\n$/, '')] as const];
  });
  return Object.fromEntries(fields);
}
