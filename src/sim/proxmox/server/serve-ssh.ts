// SPDX-License-Identifier: Apache-2.0
// Serves the shells of the hosts of a simulated cluster over SSH, one port per host.
import { createHash } from 'node:crypto';
import { createSshKey, createSshServer } from '../../ssh/ssh-server.ts';
import type { ProxmoxSim } from '../sim.ts';

export interface SshServeOptions {
  /** `HOST:PORT` of the first host; the others get the next ports. Port 0 = any free ones. */
  readonly listen: string;
  /** Public keys that may log in, one per line. */
  readonly authorizedKeys: string;
}

export interface ServedSshHost {
  readonly host: string;
  /** `host:port`. */
  readonly address: string;
  /** `type base64`, as in a known hosts file. */
  readonly key: string;
  /** Of the key, `SHA256:…`. */
  readonly fingerprint: string;
}

export interface ServedSsh {
  readonly hosts: readonly ServedSshHost[];
  /** Ends all connections without a word. */
  dropConnections(): void;
  close(): Promise<void>;
}

export async function serveSsh(
  sim: ProxmoxSim,
  names: readonly string[],
  options: SshServeOptions,
): Promise<ServedSsh> {
  const [, bind = '127.0.0.1', first = '0'] = /^(.*):(\d+)$/.exec(options.listen) ?? [];
  const authorizedKeys = options.authorizedKeys.split('\n').filter((line) => line.trim() !== '');
  const served = names.map((host) => ({ host, ...createHostServer(sim, host, authorizedKeys) }));
  const hosts: ServedSshHost[] = [];
  for (const [index, { host, server, key, fingerprint }] of served.entries()) {
    const port = await server.listen(first === '0' ? 0 : Number(first) + index, bind);
    hosts.push({ host, address: `${bind}:${port}`, key, fingerprint });
  }
  return {
    hosts,
    dropConnections: () => {
      for (const { server } of served) server.dropConnections();
    },
    close: async () => {
      await Promise.all(served.map(({ server }) => server.close()));
    },
  };
}

function createHostServer(sim: ProxmoxSim, host: string, authorizedKeys: readonly string[]) {
  const key = createSshKey(host);
  const shell = sim.shell(host);
  const server = createSshServer({
    hostKey: key.private,
    authorizedKeys,
    run: ({ command, input, isConnected, user }) =>
      user === 'root'
        ? shell.run({ command, input: new TextDecoder().decode(input), isConnected })
        : Promise.resolve({ code: 255, out: '', err: 'please run as root\n' }),
    files: {
      write: (path, bytes, mode) => shell.writeFile(path, bytes, mode),
      remove: (path) => shell.removeFile(path),
    },
    isUp: () => shell.isOnline,
  });
  const [type = '', base64 = ''] = key.public.split(' ');
  const hash = createHash('sha256').update(Buffer.from(base64, 'base64')).digest('base64');
  return { server, key: `${type} ${base64}`, fingerprint: `SHA256:${hash.replace(/=+$/, '')}` };
}
