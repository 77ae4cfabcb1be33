// SPDX-License-Identifier: Apache-2.0
// Certificates without cert-manager: runs the command of the guide and checks its files against both configurations.
import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { aFolder, pvescaler } from '../support/pvescaler.ts';
import { readCommands } from './guide.ts';
import { readManifest, readYaml } from './manifests.ts';

describe('certificates created as in the guide', () => {
  it('match the deployed server and Cluster Autoscaler configuration', () => {
    const cwd = aFolder();
    const [[program, ...args] = [], ...secrets] = readCommands('With pvescaler certs');
    expect(program).toBe('pvescaler');
    const { exitCode, out, err } = pvescaler(args, { cwd });
    expect(exitCode, err).toBe(0);

    const files = secrets.flat().flatMap((word) => /^--from-file=.+=(.+)$/.exec(word)?.[1] ?? []);
    expect(files).toHaveLength(6);
    expect(files.filter((file) => !existsSync(join(cwd, file)))).toEqual([]);

    const { data } = readManifest('deploy/cluster-autoscaler/cloud-config.yaml', 'ConfigMap');
    const deployed = parse(data['cloud-config.yaml']);
    const { address, grpc_timeout: timeout } = parse(out);
    expect({ address, timeout }).toEqual({
      address: deployed.address,
      timeout: deployed.grpc_timeout,
    });

    const read = (name: string) =>
      new X509Certificate(readFileSync(join(cwd, `certs/${name}.crt`)));
    const [ca, server, client] = [read('ca'), read('server'), read('client')];
    const [host] = address.split(':');
    expect(server.checkHost(host)).toBe(host);
    for (const one of [server, client]) expect(one.verify(ca.publicKey)).toBe(true);
    const { allow } = readYaml('deploy/server/config.yaml').grpc.tls;
    expect(allow.map((name: string) => `CN=${name}`)).toEqual([client.subject]);
  });
});
