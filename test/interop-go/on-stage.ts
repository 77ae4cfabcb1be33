// SPDX-License-Identifier: Apache-2.0
// The stage of test/interop, and Go's client before it.
import { onStage, type Stage, type StageOptions } from '../interop/stage.ts';
import type { Version } from './build.ts';
import { type GoClient, GoProcess } from './go-client.ts';

export interface GoStage extends Stage {
  readonly go: GoClient;
  readonly process: GoProcess;
}

export function targetOf({ face }: Pick<Stage, 'face'>): string {
  return `127.0.0.1:${face.port}`;
}

/** The client speaks without TLS; where the stage does not, a test dials by itself. */
export function withGo(
  version: Version,
  options: StageOptions,
  test: (stage: GoStage) => Promise<void>,
): () => Promise<void> {
  return onStage(options, async (stage) => {
    await using process = await GoProcess.start(version);
    const go = await process.dial({ target: targetOf(stage) });
    await test({ ...stage, go, process });
  });
}
