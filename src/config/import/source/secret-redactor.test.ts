// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { SecretRedactor } from './secret-redactor.ts';
import { readYaml } from './yaml-tree.ts';

it.each([
  ['token_secret: s3cr3tvalue', 's3cr3tvalue'],
  ["pxe_password = 'p4ss w0rd'", 'p4ss w0rd'],
  ['{token_secret: abc123def, x: 1}', 'abc123def'],
  ['token_secret s3cr3tvalue', 's3cr3tvalue'],
  [
    'anything 6f1c6f0e-1111-4222-8333-944445555666 anywhere',
    '6f1c6f0e-1111-4222-8333-944445555666',
  ],
  ['x: K10deadbeefdeadbeef::server:abc', 'K10deadbeefdeadbeef::server:abc'],
  ['x: abcdef.0123456789abcdef', 'abcdef.0123456789abcdef'],
])('redacts the secret of %j', (text, secret) => {
  expect(new SecretRedactor(text).redact(`<${secret}>`)).toBe('<(hidden)>');
});

it('does not redact token ids, short words and variable names', () => {
  const redactor = new SecretRedactor(
    "token_id: me@pve!scaler9\npassword: lab\npxe_password = os.environ['PXE_PASSWORD']",
  );
  expect(redactor.containsSecret('me@pve!scaler9 lab PXE_PASSWORD')).toBe(false);
});

it('redacts secrets by their key in the tree', () => {
  const redactor = new SecretRedactor('');
  const reader = readYaml(
    'a:\n  cluster_token: >-\n    t0ken of\n    two lines\n  tokens: [s3cond-one]',
    '1.1',
  );
  for (const tree of reader.ok ? reader.trees : []) redactor.addTree(tree);
  expect(redactor.redact('t0ken of two lines, s3cond-one')).toBe('(hidden), (hidden)');
});
