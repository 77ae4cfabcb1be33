// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { encodeHeaderText } from './status.ts';

it('encodes any text for a header without loss', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const header = encodeHeaderText(text);
      expect(header).toMatch(/^[\u0020-\u007e]*$/);
      expect(decodeURIComponent(header)).toBe(text.toWellFormed());
    }),
  );
});

it('replaces lone surrogates', () => {
  expect(encodeHeaderText('\ud800 %')).toBe('%EF%BF%BD %25');
});
