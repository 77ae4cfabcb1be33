// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { headerText } from './status.ts';

it('any text goes into a header and comes out of it again', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const header = headerText(text);
      expect(header).toMatch(/^[\u0020-\u007e]*$/);
      expect(decodeURIComponent(header)).toBe(text.toWellFormed());
    }),
  );
});

it('what is no text becomes some', () => {
  expect(headerText('\ud800 %')).toBe('%EF%BF%BD %25');
});
