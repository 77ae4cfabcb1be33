// SPDX-License-Identifier: Apache-2.0
import { PvescalerError } from '../ports/errors.ts';
import type { CallOptions } from '../ports/hypervisor.ts';
import type { BridgeInfo, EndpointInfo, RegionInspector, TokenInfo } from '../ports/inspection.ts';
import { ApiClient } from './api-client.ts';
import {
  createProxmoxHypervisor,
  overSsh,
  type ProxmoxOptions,
  type ProxmoxOverSshOptions,
} from './hypervisor.ts';
import { asBoolean, asNumber, asObject, asObjects, asText, encodeSegment } from './wire-values.ts';

/** One more attempt, in case another endpoint answers. */
const LIMITS = { maxAttempts: 2 };

/** Closing it closes the transport. */
export function createProxmoxInspector(options: ProxmoxOptions): RegionInspector {
  const { credentials } = options;
  const settings = { ...options, limits: { ...options.limits, ...LIMITS } };
  const hypervisor = createProxmoxHypervisor(settings);
  const api = new ApiClient(settings);
  return {
    hypervisor,
    account: credentials.kind === 'token' ? credentials.id : credentials.user,
    endpoint: async (origin, call) => ({
      version: await readEndpointVersion(options, origin, call),
      host: undefined,
    }),
    token: (call) =>
      credentials.kind === 'token'
        ? readToken(api, credentials.id, call)
        : Promise.resolve(undefined),
    hostTime: (host, call) => readHostTime(api, host, call),
    bridges: (host, call) => readBridges(api, host, call),
    urlInfo: async (host, { url, verifyCertificates }, call) => {
      const data = await api.requestData({
        method: 'GET',
        path: `/nodes/${encodeSegment(host)}/query-url-metadata`,
        query: { url, 'verify-certificates': verifyCertificates },
        operation: `let ${host} request ${url}`,
        host,
        ...call,
      });
      return { bytes: asNumber(asObject(data)['size']) };
    },
    close: () => hypervisor.close(),
  };
}

/** The same over `pvesh` on the hosts. */
export function createProxmoxInspectorOverSsh(options: ProxmoxOverSshOptions): RegionInspector {
  const { settings, pvesh } = overSsh(options);
  const inspector = createProxmoxInspector(settings);
  const endpoint = async (origin: string, call: CallOptions): Promise<EndpointInfo> => {
    const version = await readEndpointVersion(settings, origin, call);
    const limits = { timeoutMs: NODE_NAME_TIMEOUT_MS, signal: call.signal };
    return { version, host: await pvesh.nodeName(origin, limits) };
  };
  return { ...inspector, endpoint };
}

const NODE_NAME_TIMEOUT_MS = 15_000;

async function readEndpointVersion(
  options: ProxmoxOptions,
  origin: string,
  call: CallOptions,
): Promise<string> {
  const limits = { ...options.limits, maxAttempts: 1 };
  const api = new ApiClient({ ...options, endpoints: [origin], limits });
  const data = await api.requestData({
    method: 'GET',
    path: '/version',
    operation: 'read the Proxmox VE version',
    ...call,
  });
  return asText(asObject(data)['version']) ?? '0';
}

async function readToken(
  api: ApiClient,
  id: string,
  call: CallOptions,
): Promise<TokenInfo | undefined> {
  const [user = '', name = ''] = id.split('!');
  const data = await api
    .requestData({
      method: 'GET',
      path: `/access/users/${encodeSegment(user)}/token/${encodeSegment(name)}`,
      operation: `read the token ${id}`,
      ...call,
    })
    .catch((error: unknown) => {
      if (error instanceof PvescalerError && error.code === 'PERMISSION_MISSING') return undefined;
      throw error;
    });
  if (data === undefined) return undefined;
  const { privsep, expire } = asObject(data);
  const seconds = asNumber(expire) ?? 0;
  return {
    // Proxmox omits it only in old versions, where it was always on.
    hasPrivilegeSeparation: privsep === undefined || asBoolean(privsep),
    expiresAt: seconds === 0 ? undefined : seconds * 1_000,
  };
}

async function readHostTime(api: ApiClient, host: string, call: CallOptions): Promise<number> {
  const data = await api.requestData({
    method: 'GET',
    path: `/nodes/${encodeSegment(host)}/time`,
    operation: `read the clock of ${host}`,
    host,
    ...call,
  });
  return (asNumber(asObject(data)['time']) ?? 0) * 1_000;
}

async function readBridges(
  api: ApiClient,
  host: string,
  call: CallOptions,
): Promise<readonly BridgeInfo[]> {
  const data = await api.requestData({
    method: 'GET',
    path: `/nodes/${encodeSegment(host)}/network`,
    query: { type: 'any_bridge' },
    operation: `read the bridges of ${host}`,
    host,
    ...call,
  });
  return asObjects(data).flatMap((entry) => {
    const name = asText(entry['iface']);
    if (name === undefined) return [];
    return [
      {
        name,
        isLocal: /bridge$/i.test(asText(entry['type']) ?? ''),
        // Open vSwitch carries every VLAN.
        isVlanAware: asBoolean(entry['bridge_vlan_aware']) || entry['type'] === 'OVSBridge',
        vlans: asText(entry['bridge_vids']),
      },
    ];
  });
}
