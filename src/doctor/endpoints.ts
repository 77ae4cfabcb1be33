// SPDX-License-Identifier: Apache-2.0
// Each endpoint of a region: whether it answers, whether its certificate is trusted, which version it has.
import { PvescalerError } from '../ports/errors.ts';
import { type Check, failure, failureOf, type Outcome, ok, skipped, warning } from './check.ts';
import type { RegionReader } from './region-reader.ts';

const OLDEST = { major: 8, minor: 0 };
/** The first release that imports disk images through the API. */
const FIRST_WITH_IMPORT = { major: 8, minor: 4 };
const NEWEST_MAJOR = 9;

/** What an endpoint answered: its version, or why not. */
type Answer = { readonly version: string } | { readonly error: PvescalerError };

export function endpointChecks(reader: RegionReader): readonly Check[] {
  const { group, region } = reader;
  if (region.transport.kind === 'ssh') return [];
  return region.endpoints.flatMap((origin) => {
    let answer: Promise<Answer> | undefined;
    const ask = (signal: AbortSignal) => (answer ??= askEndpoint(reader, origin, signal));
    const check = (name: Check['name'], judge: (answer: Answer) => Outcome): Check => ({
      name,
      group,
      subject: origin,
      run: async (signal) => judge(await ask(signal)),
    });
    return [
      check('endpoint', judgeReachability),
      check('tls', (one) => judgeTls(reader, one)),
      check('login', (one) => judgeLogin(one)),
      check('version', (one) => judgeVersion(reader, one)),
    ];
  });
}

async function askEndpoint(
  reader: RegionReader,
  origin: string,
  signal: AbortSignal,
): Promise<Answer> {
  try {
    const inspector = await reader.inspector();
    return { version: await inspector.endpointVersion(origin, { signal }) };
  } catch (error) {
    if (error instanceof PvescalerError) return { error };
    throw error;
  }
}

/** Errors that say nothing about the network, because no request was sent. */
function isLocal({ class: kind }: PvescalerError): boolean {
  return kind === 'InvalidConfig' || kind === 'UnsupportedVersion';
}

function judgeReachability(answer: Answer): Outcome {
  if (!('error' in answer)) return ok('answers');
  const { error } = answer;
  if (isLocal(error)) return skipped(error.message);
  return error.class === 'Unreachable' || error.class === 'TimedOut'
    ? failureOf(error)
    : ok('answers');
}

function judgeTls({ region }: RegionReader, answer: Answer): Outcome {
  const error = 'error' in answer ? answer.error : undefined;
  if (error?.code === 'TLS_NOT_TRUSTED') return distrust(region.name, error);
  if (error !== undefined && error.class !== 'Unauthorized') return skipped('there is no answer');
  const { tls } = region;
  if (tls.insecure) {
    return warning(
      'tls.insecure is set: an attacker on the network can read the token',
      `Set proxmox.${region.name}.tls.fingerprints or tls.caFile instead.`,
    );
  }
  if (tls.fingerprints.length > 0) return ok('the certificate is pinned');
  return ok(tls.caPath === undefined ? 'the system trusts it' : 'tls.caFile signed it');
}

function distrust(region: string, { message, hint }: PvescalerError): Outcome {
  const fingerprint = /[0-9A-F]{2}(?::[0-9A-F]{2}){31}/i.exec(message)?.[0];
  const fix =
    fingerprint === undefined
      ? hint
      : `If the host shows the same (pvenode cert info), set it in proxmox.${region}.tls:\nfingerprints: ["${fingerprint}"]`;
  const cause = fingerprint === undefined ? message : message.replace(/; its SHA-256.*$/, '');
  return failure(cause, fix);
}

function judgeLogin(answer: Answer): Outcome {
  if (!('error' in answer)) return ok('the credentials are accepted');
  const { error } = answer;
  return error.code === 'CREDENTIALS_REFUSED' ||
    error.code === 'PERMISSION_MISSING' ||
    isLocal(error)
    ? failureOf(error)
    : skipped('there is no answer');
}

function judgeVersion(reader: RegionReader, answer: Answer): Outcome {
  if ('error' in answer) return skipped('there is no answer');
  const { version } = answer;
  const [major = 0, minor = 0] = (version.match(/\d+/g) ?? []).map(Number);
  const isAtLeast = (one: typeof OLDEST) =>
    major > one.major || (major === one.major && minor >= one.minor);
  const found = `Proxmox VE ${version}`;
  if (!isAtLeast(OLDEST) || (reader.usesImages() && !isAtLeast(FIRST_WITH_IMPORT))) {
    return failure(
      `${found} is too old${isAtLeast(OLDEST) ? ' for machines from images' : ''}`,
      'Upgrade to Proxmox VE 8.4 or newer.',
    );
  }
  if (!isAtLeast(FIRST_WITH_IMPORT)) {
    return warning(`${found} is not tested`, 'Upgrade to Proxmox VE 8.4 or newer.');
  }
  return major > NEWEST_MAJOR
    ? warning(`${found} is newer than what this release was tested with`, 'Upgrade pvescaler.')
    : ok(found);
}
