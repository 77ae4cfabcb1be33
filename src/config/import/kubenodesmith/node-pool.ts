// SPDX-License-Identifier: Apache-2.0
import type { ConfigPath } from '../../config-path.ts';
import type { ImportContext } from '../context.ts';
import type { SourceSection, SourceTree } from '../source/tree.ts';
import type { Provider } from './providers.ts';

/** A KubeNodeSmith node pool while it is converted. */
export interface NodePool {
  readonly context: ImportContext;
  readonly section: SourceSection;
  readonly root: ConfigPath;
  readonly provider: Provider;
}

/** One entry of `vmOptions`. Of two entries with the same name the last one is used. */
export interface VmOption {
  readonly name: string;
  readonly text: string;
  readonly tree: SourceTree;
}
