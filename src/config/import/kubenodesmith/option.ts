// SPDX-License-Identifier: Apache-2.0
import type { SourceTree } from '../source/tree.ts';

/** One entry of `vmOptions`; the later of two with one name wins, as in the request that is sent. */
export interface VmOption {
  readonly name: string;
  readonly text: string;
  readonly tree: SourceTree;
}
