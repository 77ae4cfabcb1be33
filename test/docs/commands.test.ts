// SPDX-License-Identifier: Apache-2.0
// Every command of the documentation is run by a test, or listed in guides.ts with the reason why it is not. Those of
// pvescaler are also parsed with its real commands and options, and npm scripts must exist.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { root } from '../support/pvescaler.ts';
import { DOCUMENTS, readSection } from './documents.ts';
import { NOT_RUN, REPLACED, RUN_BY_TESTS, SITES } from './guides.ts';
import { findUnknownWord, findUsageError } from './parse-command.ts';
import { type ShellCommand, splitScript } from './shell.ts';

/** Parts of the shell, which need no test. */
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
  const [program, verb, name = ''] = words;
  const isUnknown = program === 'npm' && verb === 'run' && !SCRIPTS.includes(name);
  return isUnknown ? `package.json has no script ${name}` : undefined;
}

const textOf = (words: ShellCommand) => words.filter((word) => word !== 'npx').join(' ');

/** Why no test runs the command. */
function findReason(words: ShellCommand): string | undefined {
  return Object.keys(NOT_RUN).find((key) => textOf(words).startsWith(key));
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

const documented = scripts.flatMap(({ at, script }) =>
  splitScript(script)
    .filter(([program = '']) => !SHELL.has(program))
    .map((words) => ({ at, words })),
);
const isReplaced = ([program = '']: ShellCommand) => REPLACED.includes(program);
const ofSites = SITES.flatMap(({ steps }) => steps).flatMap((step) =>
  typeof step === 'string' ? [] : [step.at],
);
const ofTests = Object.values(RUN_BY_TESTS).flat();
const ran = new Set(
  [
    ...ofSites.flatMap((at) => splitScript(readSection(at)).filter((words) => !isReplaced(words))),
    ...ofTests.flatMap((at) =>
      splitScript(readSection(at)).filter((words) => !ofSites.includes(at) || isReplaced(words)),
    ),
    // outputs.test.ts runs them.
    ...scripts
      .filter(({ language }) => language === 'console')
      .flatMap(({ script }) => splitScript(script)),
  ]
    .filter((words) => findReason(words) === undefined)
    .map(textOf),
);

describe('commands of the documentation', () => {
  it('are run by a test, or listed with the reason why not', () => {
    const others = documented.filter(
      ({ words }) => !ran.has(textOf(words)) && findReason(words) === undefined,
    );
    expect(others.map(({ at, words }) => `${at}: ${words.join(' ')}`)).toEqual([]);
  });

  it('are in the documentation if they are listed', () => {
    const listed = new Set(documented.map(({ words }) => findReason(words)));
    expect(Object.keys(NOT_RUN).filter((key) => !listed.has(key))).toEqual([]);
  });

  it.each(Object.entries(RUN_BY_TESTS))(
    'are run by %s, which names their headings',
    (test, sections) => {
      const source = readFileSync(join(root, test), 'utf8');
      const headings = sections.map((at) => at.split('#')[1] ?? '');
      expect(headings.filter((heading) => !source.includes(heading))).toEqual([]);
    },
  );

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
