// SPDX-License-Identifier: Apache-2.0
// Each endpoint of a region: whether it answers, whether its certificate or host key is trusted, which version it has.
import type { ErrorCode } from '../ports/error-codes.ts';
import type { PvescalerError } from '../ports/errors.ts';
import { type Check, failure, failureOf, type Outcome, ok, skipped, warning } from './check.ts';
import type { EndpointAnswer as Answer, RegionReader } from './region-reader.ts';

const OLDEST = { major: 8, minor: 0 };
/** The first release that imports disk images through the API. */
const FIRST_WITH_IMPORT = { major: 8, minor: 4 };
const NEWEST_MAJOR = 9;

export function endpointChecks(reader: RegionReader): readonly Check[] {
  const { group, region } = reader;
  return reader.origins.flatMap((origin) => {
    const check = (name: Check['name'], judge: (answer: Answer) => Outcome): Check => ({
      name,
      group,
      subject: origin.replace(/^ssh:\/\/|(?<=^ssh:.*):22$/g, ''),
      run: async () => judge(await reader.endpoint(origin)),
    });
    return region.transport.kind === 'ssh'
      ? sshChecks(reader, check)
      : [
          check('endpoint', judgeReachability),
          check('tls', (one) => judgeTls(reader, one)),
          check('login', (one) => judgeLogin(one)),
          check('version', (one) => judgeVersion(reader, one)),
        ];
  });
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

/** A connection fails at one of these, in this order; later ones are skipped then. */
const SSH_STEPS: readonly (readonly [Check['name'], readonly ErrorCode[]])[] = [
  ['host-key', ['SSH_HOST_KEY_NOT_TRUSTED', 'CONFIG_UNREADABLE']],
  ['login', ['SSH_LOGIN_REFUSED', 'SECRET_UNREADABLE']],
];

function sshChecks(
  reader: RegionReader,
  check: (name: Check['name'], judge: (answer: Answer) => Outcome) => Check,
): readonly Check[] {
  const failedStep = (answer: Answer): Check['name'] | undefined => {
    if (!('error' in answer)) return undefined;
    const { code, class: kind } = answer.error;
    if (kind === 'Unreachable' || kind === 'TimedOut') return 'endpoint';
    return SSH_STEPS.find(([, codes]) => codes.includes(code))?.[0] ?? 'version';
  };
  const names = ['endpoint', 'host-key', 'login', 'version'] as const;
  return names.map((name, index) =>
    check(name, (answer) => {
      const failed = failedStep(answer);
      if ('error' in answer && failed === name) return failureOf(answer.error);
      if (failed !== undefined && names.some((one, at) => one === failed && at < index)) {
        return skipped(`the check ${failed} failed`);
      }
      return name === 'version' ? judgeVersion(reader, answer) : ok(describeSsh(reader, name));
    }),
  );
}

function describeSsh({ region }: RegionReader, name: 'endpoint' | 'host-key' | 'login'): string {
  const { transport } = region;
  if (name === 'endpoint' || transport.kind === 'rest') return 'answers';
  const { login, trust, user } = transport;
  if (name === 'login') {
    return `${user} with ${login.kind === 'key' ? `the key ${login.path}` : 'the SSH agent'}`;
  }
  return trust.kind === 'fingerprints' ? 'is one of hostKeys' : `is in ${trust.path}`;
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
