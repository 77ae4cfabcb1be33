// SPDX-License-Identifier: Apache-2.0
// A simulated Proxmox VE cluster on a loopback port and a config for it, for tests that run the built CLI.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import { createSshKey } from '../../src/sim/ssh/ssh-server.ts';
import { aFolder, commandLine, pvescaler } from './pvescaler.ts';

const SHA256 = '5fa5b05e5ec239858c4531485d6023b0896448c2df7c63b34f8dae6ea6051a44';
const SECRET = '00000000-0000-4000-8000-000000000001';

const clusterOf = ({ privileges, behaviour }: LabOptions) => `
version: "9.2"
name: sim
hosts:
  - { name: pve1, cpus: 16, memory: 64GiB, address: 192.0.2.11, bridges: [{ name: vmbr0, dhcp: 10.10.0.0/16 }] }
  - { name: pve2, cpus: 16, memory: 64GiB, address: 192.0.2.12, bridges: [{ name: vmbr0, dhcp: 10.10.0.0/16 }] }
storages:
  - { name: local, type: dir, content: [iso, import], size: 200GiB }
  - { name: local-lvm, type: lvmthin, content: [images], size: 900GiB }
  - { name: seeds, type: nfs, content: [iso], size: 20GiB }
users:
  - id: scaler@pve
    tokens: [{ id: sim, secret: ${SECRET}, privsep: false }]
${privileges === undefined ? '' : `roles: [{ id: Limited, privs: [${privileges.join(', ')}] }]`}
acl: [{ path: /, role: ${privileges === undefined ? 'Administrator' : 'Limited'}, user: scaler@pve }]
urls:
  - { url: https://images.example/noble-with-agent.img, size: 600MiB, virtualSize: 3584MiB, checksums: { sha256: ${SHA256} } }
${behaviour === undefined ? '' : `guests: [{ match: "*", behaviour: ${behaviour} }]`}
`;

export interface LabOptions {
  /** Additional lines of the config. */
  readonly config?: string;
  readonly min?: number;
  /** Join recipe of the pool; default none. */
  readonly join?: string;
  readonly labels?: string;
  /** Of all guests, as in the description of a simulated cluster. */
  readonly behaviour?: string;
  /** What the token may do on all paths; default everything. */
  readonly privileges?: readonly string[];
  /** Connect over SSH; returns how the host keys are verified, as lines of the config. */
  readonly ssh?: (hosts: readonly SimulatedSshHost[]) => string;
}

export interface SimulatedSshHost {
  readonly host: string;
  readonly address: string;
  readonly key: string;
  readonly fingerprint: string;
}

interface Site {
  readonly folder: string;
  readonly url: string;
  readonly fingerprint: string;
  readonly ssh?: readonly SimulatedSshHost[];
}

function connectionOf({ folder, url, fingerprint, ssh = [] }: Site, options: LabOptions): string {
  if (options.ssh !== undefined) {
    const hosts = ssh.map(({ address }) => `"${address}"`).join(', ');
    return `transport: { ssh: { hosts: [${hosts}], privateKeyFile: ${folder}/key, ${options.ssh(ssh)} } }`;
  }
  return `endpoints: ["${new URL(url).origin}"]
    tls: { fingerprints: ["${fingerprint}"] }
    token: { id: "scaler@pve!sim", secretFile: ${folder}/token }`;
}

interface ApiAnswer {
  readonly status: number;
  readonly data: unknown;
}

function configOf(site: Site, options: LabOptions) {
  return `
apiVersion: pvescaler.dev/v1alpha1
state: { path: ${site.folder}/state/state.db }
http: { health: "127.0.0.1:0", dashboard: off }
intervals: { reconcile: 5s }
proxmox:
  lab:
    ${connectionOf(site, options)}
    vmIds: 1250-1300
    storage: { images: local, seeds: seeds, disks: local-lvm }
images:
  noble: { url: https://images.example/noble-with-agent.img, checksum: "sha256:${SHA256}" }
pools:
  - name: workers
    from: { image: noble }
    join: ${options.join ?? 'none'}
    labels: { ${options.labels ?? ''} }
    size: { cpu: 2, memory: 2Gi, disk: 20Gi }
    limits: { min: ${options.min ?? 0}, max: 5 }
${options.config ?? ''}`;
}

/** Starts the built CLI; the process is killed when the test ends. */
export function start(args: readonly string[]): ChildProcess {
  const [program, programArgs] = commandLine(args);
  const child = spawn(program, programArgs, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], HOME: '/nonexistent' },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

export async function aLab(options: LabOptions = {}) {
  const folder = aFolder();
  writeFileSync(join(folder, 'cluster.yaml'), clusterOf(options));
  writeFileSync(join(folder, 'token'), `${SECRET}\n`, { mode: 0o600 });
  const key = createSshKey('lab');
  writeFileSync(join(folder, 'key'), key.private, { mode: 0o600 });
  writeFileSync(join(folder, 'key.pub'), key.public);
  const ssh = options.ssh === undefined ? '' : ` --ssh-key ${folder}/key.pub`;
  const sim = start(
    `sim proxmox --cluster ${folder}/cluster.yaml --listen 127.0.0.1:0 --tls --speed 200 --json${ssh}`.split(
      ' ',
    ),
  );
  const [line] = (await once(createInterface(sim.stdout!), 'line')) as [string];
  const served = JSON.parse(line) as Omit<Site, 'folder'>;
  const { url } = served;
  const path = join(folder, 'config.yaml');
  writeFileSync(path, configOf({ folder, ...served }, options));
  const run = (...args: string[]) => pvescaler([...args, '--config', path]);
  /** A call of another user of the API. */
  const request = async (method: string, call: string): Promise<ApiAnswer> => {
    const headers = { authorization: `PVEAPIToken=scaler@pve!sim=${SECRET}` };
    const sent = httpsRequest(new URL(`/api2/json${call}`, url), {
      method,
      headers,
      rejectUnauthorized: false,
      // The simulator closes idle connections while this process waits for a command.
      agent: false,
    }).end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    const body = JSON.parse((await response.setEncoding('utf8').toArray()).join('') || '{}') as {
      readonly data?: unknown;
    };
    return { status: response.statusCode ?? 0, data: body.data };
  };
  return { folder, path, run, sim, request, sshHosts: served.ssh ?? [] };
}
