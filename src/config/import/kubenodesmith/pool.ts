// SPDX-License-Identifier: Apache-2.0
import type { Context } from '../context.ts';
import type { DraftPath } from '../ours/draft.ts';
import type { Section } from '../source/tree.ts';
import type { Provider } from './providers.ts';

/** One of their pools on its way to being one of ours. */
export interface Pool {
  readonly context: Context;
  readonly section: Section;
  readonly root: DraftPath;
  readonly provider: Provider;
}
