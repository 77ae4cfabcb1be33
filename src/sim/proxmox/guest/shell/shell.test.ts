// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createShellHarness } from '../testing/shell-harness.ts';
import { parseShell } from './parser.ts';
import { ShellSyntaxError } from './syntax.ts';

async function runForOutput(text: string, stdin?: string): Promise<string> {
  const result = await createShellHarness().sh(text, stdin === undefined ? {} : { stdin });
  return result.out + result.err;
}

async function runForExitCode(text: string): Promise<number> {
  return (await createShellHarness().sh(text)).code;
}

describe('the simulated shell expands words', () => {
  it.each([
    ['echo \'a  b\' "c  d" e\\ f', 'a  b c  d e f\n'],
    ['x=1; echo "$x" \'$x\' $x${x}y', '1 $x 11y\n'],
    ['x="a  b"; echo $x; echo "$x"', 'a b\na  b\n'],
    ['echo ""; echo a "" b', '\na  b\n'],
    ['echo ${none:-default} ${none-other} "${none:-a b}"', 'default other a b\n'],
    ['x=; echo [${x:-empty}] [${x-unset}] [${x:+set}]', '[empty] [] []\n'],
    ['x=v; echo ${x:+set} ${y:=kept}; echo $y', 'set kept\nkept\n'],
    [
      'f=/etc/a.tar.gz; echo ${f##*/} ${f#/*/} ${f%.*} ${f%%.*} ${#f}',
      'a.tar.gz a.tar.gz /etc/a.tar /etc/a 13\n',
    ],
    ['echo $(echo inner) `echo old` "$(echo "a b")"', 'inner old a b\n'],
    ['echo $((1 + 2)); n=4; n=$((n+1)); echo $n', '3\n5\n'],
    [
      'n=2; echo $((2+3*4)) $(( (1+$n)*3 )) $((-n)) $((7/2%2)) $((n>=2)) $((n==3)) $((1/0))',
      '14 9 -2 1 1 0 0\n',
    ],
    ['echo $? ; false; echo $?', '0\n1\n'],
    ['echo a#b # comment', 'a#b\n'],
    ['echo one \\\n two', 'one two\n'],
    ['echo $', '$\n'],
    [
      'mkdir -p /etc/x; touch /etc/x/a.yaml /etc/x/b.yaml; echo /etc/x/*.yaml /etc/x/"*"',
      '/etc/x/a.yaml /etc/x/b.yaml /etc/x/*\n',
    ],
    ['set -- a "b c"; for w in "$@"; do echo "<$w>"; done; echo $# $2', '<a>\n<b c>\n2 b c\n'],
  ])('%s', async (text, expected) => {
    expect(await runForOutput(text)).toBe(expected);
  });
});

describe('the simulated shell runs control flow', () => {
  it.each([
    ['true && echo yes || echo no', 'yes\n'],
    ['false && echo yes || echo no', 'no\n'],
    ['false; echo on', 'on\n'],
    ['! true && echo x; ! false && echo y', 'y\n'],
    ['if [ 1 -eq 2 ]; then echo a; elif test b = b; then echo b; else echo c; fi', 'b\n'],
    ['for i in 1 2 3; do [ $i = 2 ] && continue; echo $i; done', '1\n3\n'],
    ['n=0; while true; do n=$((n+1)); [ $n -ge 3 ] && break; done; echo $n', '3\n'],
    ['n=0; until [ $n = 2 ]; do n=$((n+1)); done; echo $n', '2\n'],
    ['case "worker-1" in master*) echo m;; worker*|agent) echo w;; *) echo o;; esac', 'w\n'],
    ['f() { echo "$1"; return 3; }; f hi; echo $?', 'hi\n3\n'],
    ['x=1; (x=2; echo $x); echo $x', '2\n1\n'],
    ['{ echo a; echo b; } | grep b', 'b\n'],
    ['echo a | (cat; echo b)', 'a\nb\n'],
    ['printf "%s\\n" c a b | sort | head -n 1', 'a\n'],
    ['exit 4; echo never', ''],
    ['f() { local v=$1; echo "$v"; }; v=outer; f inner; echo $v', 'inner\nouter\n'],
    ['while read -r l; do echo "<$l>"; done <<E\na b\nc\nE', '<a b>\n<c>\n'],
    ["trap 'echo bye' EXIT; echo hi; exit 0", 'hi\nbye\n'],
    ['exec echo replaced; echo never', 'replaced\n'],
    ['echo on; exec > /dev/null; echo off', 'on\n'],
    ['(exec > /dev/null; echo off); echo on', 'on\n'],
    ['if true; then exec > /tmp/f; fi; echo in', ''],
    ['exec 2> /dev/null; echo on; echo off >&2', 'on\n'],
    ['echo a && (echo b; false) || echo c', 'a\nb\nc\n'],
  ])('%s', async (text, expected) => {
    expect(await runForOutput(text)).toBe(expected);
  });

  it('exits at the first failure under set -e, except in conditions', async () => {
    expect(
      await runForOutput('set -e; if false; then :; fi; false || echo kept; false; echo never'),
    ).toBe('kept\n');
    expect(await runForOutput('set -e; ! true; true && false || :; echo on')).toBe('on\n');
    expect(await runForExitCode('set -e; false | true; exit 7')).toBe(7);
    expect(await runForExitCode('set -eo pipefail; false | true; exit 7')).toBe(1);
    expect(await runForExitCode('set -e; x=$(false); exit 7')).toBe(1);
  });

  it('stops a script that never ends', async () => {
    expect(await runForExitCode('while true; do :; done')).toBe(124);
    expect(await runForExitCode("while true; do sh -c 'while true; do :; done'; done")).toBe(124);
    expect(await runForExitCode('f() { f; }; f')).toBe(124);
  });

  it('advances the clock for its commands', async () => {
    const harness = createShellHarness();
    await harness.sh('sleep 5; sleep 1m');
    expect(harness.elapsedMs).toBeGreaterThanOrEqual(65_000);
  });
});

describe('the simulated shell redirects', () => {
  it.each([
    ['echo a > /tmp/f; echo b >> /tmp/f; cat /tmp/f', 'a\nb\n'],
    ['echo gone > /dev/null; echo kept >&2', 'kept\n'],
    ['cat /none 2>/dev/null || echo caught', 'caught\n'],
    ['nosuch > /tmp/o 2>&1; cat /tmp/o', 'sh: nosuch: not found\n'],
    ['nosuch &> /tmp/o; cat /tmp/o', 'sh: nosuch: not found\n'],
    ['cat < /etc/machine-id | wc -l', '1\n'],
    ['x=v; cat <<EOF\n$x "q"\n\\$x\nEOF\necho after', 'v "q"\n$x\nafter\n'],
    ["x=v; cat <<'EOF'\n$x\nEOF", '$x\n'],
    ['cat <<-EOF\n\tindented\n\tEOF', 'indented\n'],
    ['cat <<< "here"', 'here\n'],
    ['cd /tmp && echo rel > f && cat /tmp/f', 'rel\n'],
    ['for i in 1 2; do echo $i; done > /tmp/l; cat /tmp/l', '1\n2\n'],
    [
      'while read a b; do echo "$b-$a"; done < /tmp/none; echo x y z | while read a b; do echo "$b-$a"; done',
      'y z-x\nsh: cannot open /tmp/none: No such file\n',
    ],
  ])('%s', async (text, expected) => {
    expect(await runForOutput(text)).toBe(expected);
  });

  it('cannot create a file where there is no directory', async () => {
    expect(await runForOutput('echo x > /no/such/dir/f || echo failed')).toBe(
      'failed\nsh: cannot create /no/such/dir/f: Directory nonexistent\n',
    );
    expect(await runForOutput('echo x > /etc')).toContain('Is a directory');
  });
});

describe('the simulated shell runs builtins', () => {
  it.each([
    ["export A=1; sh -c 'echo $A'; B=2; sh -c 'echo \"[$B]\"'; C=3 sh -c 'echo $C'", '1\n[]\n3\n'],
    ['echo "V=1" > /tmp/e; . /tmp/e; echo $V', '1\n'],
    ['echo "V=2" > /tmp/e; source /tmp/e; echo $V', '2\n'],
    ['eval "echo a; echo b"', 'a\nb\n'],
    ['command -v curl >/dev/null && echo has; command -v k3s || echo not', 'has\nnot\n'],
    ['unset X; set -- 1 2 3; shift; echo $1', '2\n'],
    ['cd /nowhere || echo stayed', "stayed\ncd: can't cd to /nowhere\n"],
    ['. /nowhere || echo no', 'no\n.: cannot open /nowhere: No such file\n'],
  ])('%s', async (text, expected) => {
    expect(await runForOutput(text)).toBe(expected);
  });

  it('returns 127 for unknown and 126 for non-executable commands, and records the errors', async () => {
    const harness = createShellHarness();
    expect((await harness.sh('frobnicate --now')).code).toBe(127);
    await harness.sh('echo x > /tmp/s');
    expect((await harness.sh('/tmp/s')).code).toBe(126);
    expect(harness.history.errors).toEqual([
      'sh: frobnicate: not found',
      'sh: /tmp/s: Permission denied',
    ]);
  });
});

describe('the simulated shell runs nested shells', () => {
  it.each([
    ["sh -c 'echo $0 $1' name arg", 'name arg\n'],
    ["echo 'echo $1' | sh -s -- first", 'first\n'],
    ["echo 'echo $1' | bash -s - first", 'first\n'],
    ["echo 'echo in' | bash", 'in\n'],
    [
      "printf '#!/bin/sh\\necho ran $1\\n' > /tmp/s; bash /tmp/s x; chmod +x /tmp/s; /tmp/s y",
      'ran x\nran y\n',
    ],
    ["bash -euo pipefail -c 'false; echo never'; echo $?", '1\n'],
    [
      "printf '#!/bin/sh -e\\nfalse\\necho never\\n' > /tmp/s; chmod +x /tmp/s; /tmp/s; echo $?",
      '1\n',
    ],
    ["printf '#!/usr/bin/env bash\\necho env\\n' > /tmp/s; chmod +x /tmp/s; /tmp/s", 'env\n'],
    [
      "printf '#!/usr/bin/python3\\nprint(1)\\n' > /tmp/s; chmod +x /tmp/s; /tmp/s",
      '/usr/bin/python3: not simulated\n',
    ],
    ['echo a b | xargs -I{} echo [{}]; echo x | xargs false; echo $?', '[a b]\n123\n'],
    ['sh /none', 'sh: /none: No such file or directory\n'],
    ["sudo -u root env A=5 sh -c 'echo $A'", '5\n'],
    ['timeout 5 echo in; echo a b | xargs -n 1 echo', 'in\na\nb\n'],
  ])('%s', async (text, expected) => {
    expect(await runForOutput(text)).toBe(expected);
  });

  it('runs many shells concurrently', async () => {
    const { shell } = createShellHarness();
    const runs = Array.from({ length: 60 }, () =>
      shell.runProgram(['sh', '-c', 'sleep 1; echo x']),
    );
    expect((await Promise.all(runs)).every((run) => run.out === 'x\n')).toBe(true);
  });

  it('stops a script that calls itself', async () => {
    const harness = createShellHarness();
    await harness.sh("printf '#!/bin/sh\\n/tmp/s\\n' > /tmp/s; chmod +x /tmp/s");
    expect((await harness.sh('/tmp/s')).code).toBe(126);
  });
});

describe('the simulated shell with invalid input', () => {
  it.each([
    'if true; then',
    'echo "open',
    "echo 'open",
    'for x in a; do',
    'echo $(',
    ')',
    'a &&',
    'echo ${x!}',
    'cat <<E\nno end',
    '| x',
    'case x in',
  ])('rejects %j with exit code 2', async (text) => {
    const result = await createShellHarness().sh(text);
    expect(result.code).toBe(2);
    expect(result.err).toContain('syntax error');
  });

  it('throws only ShellSyntaxError on arbitrary text', () => {
    const piece = fc.constantFrom(
      'if ',
      'then ',
      'fi',
      '$(',
      ')',
      '${',
      '}',
      '"',
      "'",
      '`',
      '<<E\n',
      '\n',
      ';',
      '&&',
      '||',
      '|',
      '\\',
      'x=',
      '$x',
      '{ ',
      '((',
      '>',
      '2>&1',
      'case ',
      ' in ',
      ';;',
      'esac',
      'do ',
      'done',
      'word ',
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.array(piece, { maxLength: 30 }).map((parts) => parts.join('')),
          fc.string(),
        ),
        (text) => {
          try {
            parseShell(text);
          } catch (error) {
            expect(error).toBeInstanceOf(ShellSyntaxError);
          }
        },
      ),
      { numRuns: 1000 },
    );
  });

  it('never throws, for any script', async () => {
    const word = fc.constantFrom(
      'echo',
      'a',
      '$x',
      '"$y"',
      '&&',
      '|',
      ';',
      '! ',
      '(',
      ')',
      'if',
      'then',
      'fi',
      '>',
      '/tmp/f',
      'cat',
      'grep',
      '[',
      ']',
      'sed',
      's/(/x/',
      'tar',
      'chmod',
      'systemctl',
      'k3s',
      'exit',
      'break',
      'return',
      'sha256sum',
      '-c',
      '<',
    );
    await fc.assert(
      fc.asyncProperty(fc.array(word, { maxLength: 12 }), async (words) => {
        const result = await createShellHarness().sh(words.join(' '));
        expect(Number.isInteger(result.code)).toBe(true);
      }),
      { numRuns: 300 },
    );
  });
});
