// SPDX-License-Identifier: Apache-2.0
// The server fixture of test/interop with a grpc-go client.
import {
  type ServerFixture,
  type ServerFixtureOptions,
  withServer,
} from '../interop/test-server.ts';
import type { Version } from './build.ts';
import { type GoClient, GoProcess } from './go-client.ts';

export interface GoFixture extends ServerFixture {
  readonly go: GoClient;
  readonly process: GoProcess;
}

export function serverAddress({ server }: Pick<ServerFixture, 'server'>): string {
  return `127.0.0.1:${server.port}`;
}

/** The client connects without TLS; a test with TLS dials itself. */
export function withGoClient(
  version: Version,
  options: ServerFixtureOptions,
  test: (fixture: GoFixture) => Promise<void>,
): () => Promise<void> {
  return withServer(options, async (fixture) => {
    await using process = await GoProcess.start(version);
    const go = await process.dial({ target: serverAddress(fixture) });
    await test({ ...fixture, go, process });
  });
}
