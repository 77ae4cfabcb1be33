// SPDX-License-Identifier: Apache-2.0
import type { Tree } from '../source/tree.ts';

/** One entry of `vmOptions`; the later of two with one name wins, as in the request that is sent. */
export interface Option {
  readonly name: string;
  readonly text: string;
  readonly tree: Tree;
}
