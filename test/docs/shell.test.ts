// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { splitScript } from './shell.ts';

it.each([
  ['pvescaler plan --all # why', [['pvescaler', 'plan', '--all']]],
  [
    'npx pvescaler sim proxmox --json > try/sim.json &',
    [['npx', 'pvescaler', 'sim', 'proxmox', '--json']],
  ],
  ['serve --config x > log 2>&1 &', [['serve', '--config', 'x']]],
  ['a "b c" \\\n  d | e', [['a', 'b c', 'd'], ['e']]],
  [
    'until test -f x; do sleep 1; done',
    [
      ['test', '-f', 'x'],
      ['sleep', '1'],
    ],
  ],
  [
    'export A=$(pvescaler pools)',
    [
      ['pvescaler', 'pools'],
      ['export', 'A=$(pvescaler pools)'],
    ],
  ],
  [
    '--token "$(kubectl create token x)"',
    [
      ['kubectl', 'create', 'token', 'x'],
      ['--token', '$(kubectl create token x)'],
    ],
  ],
  [
    'source <(pvescaler completion bash)',
    [
      ['pvescaler', 'completion', 'bash'],
      ['source', '<(pvescaler completion bash)'],
    ],
  ],
  ['cat > x <<EOF\nkey: pvescaler nothing\nEOF\nls', [['cat'], ['ls']]],
  ['A=1 B=2 run', [['run']]],
] as const)('splits %j', (script, commands) => {
  expect(splitScript(script)).toEqual(commands);
});
