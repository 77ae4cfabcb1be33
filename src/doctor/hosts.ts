// SPDX-License-Identifier: Apache-2.0
// Whether the region can be read, its hosts, and their clocks.
import { formatCount } from '../model/format-text.ts';
import type { ErrorCode } from '../ports/error-codes.ts';
import { PvescalerError } from '../ports/errors.ts';
import type { RegionView } from '../ports/hypervisor.ts';
import { type Check, failure, type Outcome, ok, skipped, warning } from './check.ts';
import type { RegionReader } from './region-reader.ts';

/** Certificates and join tokens are refused by a guest whose clock, set by its host, differs by minutes. */
const SKEW_WARNING_MS = 5_000;
const SKEW_FAILURE_MS = 60_000;

export function hostsChecks(reader: RegionReader): readonly Check[] {
  const { group } = reader;
  return [
    {
      name: 'region',
      group,
      run: async () => {
        try {
          const { hosts, vms } = await reader.view();
          return ok(`${formatCount(hosts.length, 'host')}, ${formatCount(vms.length, 'VM')}`);
        } catch (error) {
          if (isReportedByEndpoints(reader, error)) return skipped('no endpoint can be used');
          throw error;
        }
      },
    },
    {
      name: 'hosts',
      group,
      run: () =>
        reader.withView(async (view) => {
          const outcome = judgeHosts(reader, view.hosts);
          if (outcome.status === 'failure') return outcome;
          return judgeSshHosts(reader, view, await reader.connectedHosts()) ?? outcome;
        }),
    },
  ];
}

const ENDPOINT_ERRORS: readonly ErrorCode[] = [
  'PVE_UNREACHABLE',
  'TLS_NOT_TRUSTED',
  'CREDENTIALS_REFUSED',
  'SECRET_UNREADABLE',
  'CONFIG_UNREADABLE',
];

const SSH_ERRORS: readonly ErrorCode[] = [
  ...ENDPOINT_ERRORS,
  'SSH_HOST_KEY_NOT_TRUSTED',
  'SSH_LOGIN_REFUSED',
  'CONFIG_INVALID',
];

function isReportedByEndpoints({ region }: RegionReader, error: unknown): boolean {
  if (!(error instanceof PvescalerError)) return false;
  return (region.transport.kind === 'rest' ? ENDPOINT_ERRORS : SSH_ERRORS).includes(error.code);
}

/** Commands for a host run on the host itself, so each must be configured. */
function judgeSshHosts(
  reader: RegionReader,
  view: RegionView,
  connected: readonly string[] | undefined,
): Outcome | undefined {
  if (connected === undefined) return undefined;
  const key = `proxmox.${reader.region.name}.transport.ssh.hosts`;
  const names = view.hosts.map(({ name }) => name);
  const foreign = connected.filter((name) => !names.includes(name));
  if (foreign.length > 0) {
    return failure(
      `${foreign.join(', ')} in transport.ssh.hosts is not in the cluster of ${names.join(', ')}`,
      `Remove it from ${key}; hosts of another cluster, and single hosts, are regions of their own.`,
    );
  }
  const missing = reader
    .usableHosts(view)
    .filter(({ name, online }) => online && !connected.includes(name))
    .map(({ name }) => name);
  // One that does not answer is reported as an endpoint, and may be the missing one.
  if (missing.length === 0 || connected.length < reader.origins.length) return undefined;
  return failure(
    `no address in transport.ssh.hosts is that of ${missing.join(', ')}: nothing can run there`,
    `Add it to ${key}, or deny it in hosts.deny.`,
  );
}

function judgeHosts(
  { region }: RegionReader,
  hosts: readonly { readonly name: string; readonly online: boolean }[],
): Outcome {
  const { allow, deny } = region.hosts;
  const names = hosts.map(({ name }) => name);
  const unknown = [...allow, ...deny].filter((name) => !names.includes(name));
  if (unknown.length > 0) {
    return failure(
      `${unknown.join(', ')} in hosts.allow or hosts.deny does not exist; Proxmox has ${names.join(', ')}`,
      `Correct proxmox.${region.name}.hosts.`,
    );
  }
  const usable = hosts.filter(
    ({ name }) => (allow.length === 0 || allow.includes(name)) && !deny.includes(name),
  );
  const offline = usable.filter(({ online }) => !online).map(({ name }) => name);
  if (offline.length === usable.length) {
    return failure(
      usable.length === 0
        ? 'no host may be used'
        : `no usable host is online: ${offline.join(', ')}`,
      'Start a host, or allow another one.',
    );
  }
  if (offline.length > 0) {
    return warning(
      `${offline.join(', ')} is offline: its machines cannot be reached, and it gets no new ones`,
      'Start the host, or deny it in hosts.deny while it is away.',
    );
  }
  return ok(`${usable.map(({ name }) => name).join(', ')} online`);
}

export function clockCheck(
  reader: RegionReader,
  {
    host,
    group,
    now,
  }: { readonly host: string; readonly group: string; readonly now: () => number },
): Check {
  return {
    name: 'clock',
    group,
    run: async (signal) => {
      const inspector = await reader.inspector();
      const before = now();
      const time = await inspector.hostTime(host, { signal });
      const after = now();
      // The host reports whole seconds, so its clock is up to a second ahead of `time`.
      const skewMs = Math.max(0, before - (time + 1_000), time - after);
      const seconds = Math.round(skewMs / 1_000);
      if (skewMs < SKEW_WARNING_MS) return ok('agrees with this machine');
      const cause = `the clock of ${host} differs by ${seconds} s from that of this machine`;
      const fix = 'Run chrony on the host and on this machine: timedatectl set-ntp true';
      return (skewMs < SKEW_FAILURE_MS ? warning : failure)(cause, fix);
    },
  };
}
