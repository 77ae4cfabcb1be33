// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { suffixProblem } from './quantity-suffix-hint.ts';

test.each([
  ['GB', "unknown suffix 'GB'; did you mean 'G' or 'Gi'?"],
  ['gb', "unknown suffix 'gb'; did you mean 'G' or 'Gi'?"],
  ['g', "unknown suffix 'g'; did you mean 'G' or 'Gi'?"],
  ['K', "unknown suffix 'K'; did you mean 'k' or 'Ki'?"],
  ['kb', "unknown suffix 'kb'; did you mean 'k' or 'Ki'?"],
  ['MB', "unknown suffix 'MB'; did you mean 'M' or 'Mi'?"],
  ['mi', "unknown suffix 'mi'; did you mean 'Mi'?"],
  ['GiB', "unknown suffix 'GiB'; did you mean 'Gi'?"],
  ['B', "unknown suffix 'B'; bytes are written without a suffix"],
  ['bytes', "unknown suffix 'bytes'; bytes are written without a suffix"],
  ['cores', "unknown suffix 'cores'; cores are written without a suffix"],
  ['vcore', "unknown suffix 'vcore'; cores are written without a suffix"],
  ['cpu', "unknown suffix 'cpu'; cores are written without a suffix"],
  ['x', "unknown suffix 'x'; suffixes are n u m k M G T P E and Ki Mi Gi Ti Pi Ei"],
  ['GBs', "unknown suffix 'GBs'; suffixes are n u m k M G T P E and Ki Mi Gi Ti Pi Ei"],
  [' Gi', 'quantity contains white space'],
  [',5Gi', "quantity contains ','; the decimal separator is '.'"],
  ['e1.5', 'quantity is not a number with an optional suffix such as m, k, M, G, Ki, Mi or Gi'],
  ['-3', 'quantity is not a number with an optional suffix such as m, k, M, G, Ki, Mi or Gi'],
])("'%s': %s", (text, problem) => {
  expect(suffixProblem(text)).toBe(problem);
});
