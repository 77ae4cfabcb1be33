// SPDX-License-Identifier: Apache-2.0
// Listen addresses of servers: `:50051`, `0.0.0.0:8080`, `localhost:8080`, `[::1]:8080`,
// `[fe80::1%eth0]:8080`. Host and port are separate, as the socket API needs them.
import { accepted, type Parsed, refused } from '../../model/parsed.ts';
import { parseIpAddress } from './ip-address.ts';

export interface ListenAddress {
  /** Empty means all IPv4 and IPv6 addresses of the machine. Includes an IPv6 zone (`fe80::1%eth0`). */
  readonly host: string;
  readonly port: number;
}

const FORM = "must have the form 'host:port', ':port' or '[IPv6 address]:port'";

export function parseListenAddress(text: string): Parsed<ListenAddress> {
  const [, bracketed, plain, digits] = /^(?:\[([^[\]]*)\]|([^:[\]]*)):(\d{1,5})$/.exec(text) ?? [];
  if (digits === undefined) return refused(FORM);
  const port = Number(digits);
  if (port > 65_535) return refused(`has port ${port}; the highest port is 65535`);
  const host = bracketed ?? plain ?? '';
  const problem = bracketed === undefined ? hostNameProblem(host) : ipv6Problem(host);
  return problem === undefined ? accepted({ host, port }) : refused(problem);
}

function hostNameProblem(host: string): string | undefined {
  if (/^[\d.]+$/.test(host))
    return parseIpAddress(host).ok ? undefined : 'contains an invalid IPv4 address';
  return host === '' || /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(%[\w.-]+)?$/.test(host)
    ? undefined
    : 'contains an invalid host name';
}

function ipv6Problem(host: string): string | undefined {
  const [address = '', zone, ...more] = host.split('%');
  if (more.length > 0 || zone === '') return 'contains an invalid IPv6 zone';
  const parsed = parseIpAddress(address);
  return parsed.ok && parsed.value.family === 6
    ? undefined
    : 'must contain an IPv6 address between the brackets';
}

export function formatListenAddress({ host, port }: ListenAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

export function isLoopback({ host }: ListenAddress): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.');
}
