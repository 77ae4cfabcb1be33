// SPDX-License-Identifier: Apache-2.0
import type { ImportContext } from '../context.ts';
import type { DraftPath } from '../output/draft.ts';
import type { SourceSection } from '../source/tree.ts';
import type { Provider } from './providers.ts';

/** One of their pools on its way to being one of ours. */
export interface NodePool {
  readonly context: ImportContext;
  readonly section: SourceSection;
  readonly root: DraftPath;
  readonly provider: Provider;
}
