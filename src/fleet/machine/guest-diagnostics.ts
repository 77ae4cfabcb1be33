// SPDX-License-Identifier: Apache-2.0
// What a guest that failed to boot or join says about itself, read through its agent before the VM is stopped. The text goes
// into the record and the journal, so everything that may be a secret is masked.
import { stripVTControlCharacters } from 'node:util';
import { JOIN_UNIT } from '../../bootstrap/index.ts';
import type { GuestDiagnostics } from '../../model/machine.ts';
import { asPvescalerError, PvescalerError } from '../../ports/errors.ts';
import { isMachineError } from '../context/machine-error.ts';
import type { MachineReconcile } from '../context/machine-reconcile.ts';

const TIMEOUT_MS = 15_000;
const LOG_LINES = 30;
const MAX_LINES = 100;
const MAX_LINE_LENGTH = 300;
const JOURNAL_LINES = 5;
const MASK = '•••';

const UNITS = [JOIN_UNIT, 'k3s-agent', 'rke2-agent', 'kubelet'];

/** Commands that fail, because the guest lacks them, leave their message in the output. */
const SCRIPT = [
  'echo "== cloud-init status"',
  'cloud-init status --long 2>&1',
  'echo "== /var/log/cloud-init-output.log"',
  `tail -n ${LOG_LINES} /var/log/cloud-init-output.log 2>&1`,
  'echo "== journal of the join"',
  `journalctl ${UNITS.map((unit) => `-u ${unit}`).join(' ')} -n ${LOG_LINES} --no-pager -o cat 2>&1`,
].join('\n');

/** Reads once; an error is part of the result, and never delays the deletion further. False when there is nothing to do. */
export async function captureDiagnostics(
  reconcile: MachineReconcile,
  power: 'running' | 'stopped',
): Promise<boolean> {
  const { machine, context, placement } = reconcile;
  const failedIn = machine.failure?.phase;
  if (machine.diagnostics !== undefined) return false;
  if (failedIn !== 'booting' && failedIn !== 'joining') return false;
  const read = power === 'running' ? await readGuest(reconcile) : { error: 'the VM is stopped' };
  const diagnostics: GuestDiagnostics = { at: context.now, lines: [], ...read };
  await reconcile.update({ diagnostics });
  const last = diagnostics.lines.slice(-JOURNAL_LINES).join(' | ');
  await reconcile.record({
    kind: 'saw',
    reason: 'GuestDiagnostics',
    message:
      diagnostics.error === undefined
        ? `${placement.name} reported before its end, as machine show shows in full: ${last}`
        : `${placement.name} could not be examined before its end: ${diagnostics.error}`,
  });
  return true;
}

async function readGuest(
  reconcile: MachineReconcile,
): Promise<Pick<GuestDiagnostics, 'error'> | Pick<GuestDiagnostics, 'lines'>> {
  const { hypervisor, vm, context } = reconcile;
  try {
    const { output, errorOutput } = await hypervisor.guestExec(
      vm,
      { command: ['/bin/sh', '-c', SCRIPT], timeoutMs: TIMEOUT_MS },
      context.writeOptions(),
    );
    return { lines: toLines(`${output}\n${errorOutput}`, await knownSecrets(reconcile)) };
  } catch (error) {
    if (!isMachineError(error)) throw error;
    const { message, hint, code } = asPvescalerError(error);
    return { error: code === 'PERMISSION_MISSING' ? `${message}; ${hint}` : message };
  }
}

function toLines(text: string, secrets: readonly string[]): readonly string[] {
  return maskGuestSecrets(text, secrets)
    .split(/\r?\n/)
    .map((line) => line.trimEnd().slice(0, MAX_LINE_LENGTH))
    .filter((line) => line !== '')
    .slice(-MAX_LINES);
}

/** The token of this machine, as far as this process knows it. Unknown ones are recognised by their form. */
async function knownSecrets({ context, id, pool }: MachineReconcile): Promise<readonly string[]> {
  const join = pool?.seed?.join;
  const isStatic = join !== undefined && join.kind !== 'none' && join.token.kind === 'static';
  const own = context.state.tokens.get(id)?.token;
  const fixed =
    isStatic && join.token.kind === 'static'
      ? await join.token.read().catch((error: unknown) => {
          if (error instanceof PvescalerError) return undefined;
          throw error;
        })
      : undefined;
  return [own, fixed].filter((secret) => secret !== undefined);
}

/** Control characters except tab and line feed. */
const CONTROL = /[^\P{Cc}\n\t]/gu;

const SECRET_FORMS: readonly RegExp[] = [
  // Tokens of k3s and RKE2, bootstrap tokens, hashed passwords, private keys.
  /K10[0-9a-f]{64}::\S+/g,
  /(?<![a-z0-9.])[a-z0-9]{6}\.[a-z0-9]{16}(?![a-z0-9])/g,
  /\$(?:1|2[aby]|5|6|y)\$[^\s:]+/g,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
  /\b(?:Bearer|Basic)\s+\S+/gi,
  /(?<=:\/\/[^/\s:@]*:)[^@\s/]+(?=@)/g,
];

const ASSIGNED =
  /([\w.-]{0,64}(?:pass(?:word|wd|phrase)?|secret|token|credential|api-?key)[\w.-]{0,64}["']?\s{0,4}(?:=|:\s)\s{0,4}|--?(?:token|password|secret)\s+)("[^"]*"|'[^']*'|\S+)/gi;

/** Masks the given secrets and everything that has the form of one. */
export function maskGuestSecrets(text: string, secrets: readonly string[]): string {
  let clean = stripVTControlCharacters(text).replaceAll(CONTROL, '');
  for (const secret of secrets.filter(({ length }) => length >= 4)) {
    clean = clean.replaceAll(secret, MASK);
    // A token of k3s contains the bootstrap token after its CA hash.
    const inner = secret.split('::').at(-1) ?? '';
    if (inner.length >= 4) clean = clean.replaceAll(inner, MASK);
  }
  for (const form of SECRET_FORMS) clean = clean.replaceAll(form, MASK);
  return clean.replaceAll(ASSIGNED, `$1${MASK}`);
}
