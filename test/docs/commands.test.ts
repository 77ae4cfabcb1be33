// SPDX-License-Identifier: Apache-2.0
// Every command of the documentation: those of pvescaler are parsed with its real commands and options, npm scripts must
// exist, and every other program must be in the table below. Other tests run the walkthroughs.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { root } from '../support/pvescaler.ts';
import { DOCUMENTS } from './documents.ts';
import { findUnknownWord, findUsageError } from './parse-command.ts';
import { type ShellCommand, splitScript } from './shell.ts';

/** Programs that are not part of the repository, and why no test of this file runs them. */
const EXTERNAL: Readonly<Record<string, string>> = {
  kubectl: 'needs a cluster; test/e2e runs the walkthroughs with it',
  helm: 'needs a cluster and a chart repository',
  docker: 'needs a container engine; test/deploy follows the Dockerfile',
  pveum: 'runs on a Proxmox host; test/deploy runs the commands of the guides on the simulator',
  pvesm: 'runs on a Proxmox host',
  qm: 'runs on a Proxmox host',
  git: 'needs the address of the repository; test:fresh-clone clones it',
  curl: 'needs a server that runs',
  scp: 'needs a Proxmox host',
  ssh: 'needs a host',
  'ssh-keygen': 'writes keys',
  'ssh-copy-id': 'needs a host',
  systemctl: 'needs an installed service',
  journalctl: 'needs an installed service',
  install: 'needs root',
  useradd: 'needs root',
  chown: 'needs root',
  openssl: 'reads a certificate',
  k3s: 'runs on a k3s server',
  rke2: 'runs on an RKE2 server',
  sqlite3: 'reads a database',
  $CLUSTER_AUTOSCALER: 'test/e2e runs it',
};

const SHELL = new Set(
  'bash cat cd chmod cp echo export grep kill mkdir mv printf rm sed sleep source tar test touch umask wait'.split(
    ' ',
  ),
);

const SCRIPTS = Object.keys(
  (
    JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>;
    }
  ).scripts,
);

/** The arguments of pvescaler, if the command runs it. */
function argumentsOf(words: ShellCommand): readonly string[] | undefined {
  const line = words.slice(0, 2).join(' ');
  if (/^(?:sudo|env) /.test(line)) return argumentsOf(words.slice(1));
  if (/^(?:npx pvescaler|node \S*bin\/pvescaler\.js)$/.test(line)) return words.slice(2);
  if (/^(?:\S*\/)?pvescaler(?: |$)/.test(line)) return words.slice(1);
  const separator = words.indexOf('--');
  const isExec = words[0] === 'kubectl' && words.includes('exec') && separator > 0;
  return isExec ? argumentsOf(words.slice(separator + 1)) : undefined;
}

async function findProblem(words: ShellCommand): Promise<string | undefined> {
  const args = argumentsOf(words);
  if (args !== undefined) return findUsageError(args);
  const [program = '', verb, name = ''] = words;
  if (program === 'npm') {
    const isUnknown = verb === 'run' && !SCRIPTS.includes(name);
    return isUnknown ? `package.json has no script ${name}` : undefined;
  }
  return SHELL.has(program) || program in EXTERNAL ? undefined : `unknown program ${program}`;
}

const scripts = DOCUMENTS.flatMap(({ blocks }) => blocks)
  .filter(({ language }) => ['sh', 'bash', 'console'].includes(language))
  .map((block) => ({
    ...block,
    script:
      block.language === 'console'
        ? (block.text.match(/(?<=^\$ ).*\n/gm) ?? []).join('')
        : block.text,
  }));

describe('commands of the documentation', () => {
  it.each(scripts.map((block) => [block.at, block] as const))('%s', async (_at, { script }) => {
    const commands = splitScript(script);
    expect(commands).not.toEqual([]);
    for (const words of commands) expect(await findProblem(words), words.join(' ')).toBeUndefined();
  });

  it('are many', () => {
    const invocations = scripts.flatMap(({ script }) => splitScript(script).filter(argumentsOf));
    expect(scripts.length).toBeGreaterThan(60);
    expect(invocations.length).toBeGreaterThan(60);
  });

  it('in prose name only subcommands and options that exist', () => {
    const wrong = DOCUMENTS.flatMap(({ file, prose }) =>
      inlineCommands(prose).flatMap((text) => {
        const unknown = findUnknownWord(text.split(/\s+/));
        return unknown === undefined ? [] : [`${file}: pvescaler ${text}: unknown ${unknown}`];
      }),
    );
    expect(wrong).toEqual([]);
  });

  it.each([
    [['machnes'], /unknown command machnes/],
    [['pool', 'scale', 'workers'], /required option '--to/],
    [['plan', '--al'], /unknown option --al/],
    [['machine', 'delete'], /missing required argument 'machines'/],
    [['explain', 'deployment', 'web'], /Allowed choices are pod, node, pool, host/],
    [['config', 'import', '--from', 'karpenter', 'x.yaml'], /is invalid/],
  ] as const)('would be refused with a typo: pvescaler %j', async (args, message) => {
    expect(await findUsageError(args)).toMatch(message);
  });

  it.each([
    [['pool', 'resum'], 'resum'],
    [['plan', '--dry-run'], '--dry-run'],
    [['explain', 'POD'], 'POD'],
    [['explain', 'pod', 'NAME'], undefined],
    [['machine', 'show', '…'], undefined],
  ] as const)('in prose are checked: pvescaler %j', (args, unknown) => {
    expect(findUnknownWord(args)).toBe(unknown);
  });
});

/** `pvescaler vm create | list` and `explain pod|node NAME` in backticks, with each alternative as a command of its own. */
function inlineCommands(prose: string): readonly string[] {
  const found = [...prose.matchAll(/`(?:npx )?pvescaler\s+([a-z][^`]*)`/g)].map(([, text = '']) =>
    text.replaceAll(/\\\|/g, '|').replaceAll(/\s+/g, ' '),
  );
  return found.flatMap(expandAlternatives);
}

function expandAlternatives(text: string): readonly string[] {
  const [alternatives] = /\S+(?: ?\| ?[\w-]+)+/.exec(text) ?? [];
  if (alternatives === undefined) return [text.replaceAll(/[[\]()]/g, '')];
  return alternatives
    .split('|')
    .flatMap((one) => expandAlternatives(text.replace(alternatives, one.trim())));
}
