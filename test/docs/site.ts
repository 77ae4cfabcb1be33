// SPDX-License-Identifier: Apache-2.0
// Runs the sections of a site, see guides.ts: one bash script in a folder of its own, which ends at the first failure.
// The trace of bash shows what was run.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { freePorts } from '../e2e/controlplane/free-ports.ts';
import { aFolder, commandLine, root } from '../support/pvescaler.ts';
import { readDocument, readSection } from './documents.ts';
import { NOT_RUN, REPLACED, type Site, type SiteSection } from './guides.ts';
import { type ShellCommand, splitScript } from './shell.ts';

/** The real programs; without them, nothing runs in their place. */
export interface ClusterPrograms {
  readonly kubectl?: string;
  readonly helm?: string;
  /** Of a real cluster; absent: a simulated one. */
  readonly kubeconfig?: string;
}

const HOSTS = `
version: "9.2"
hosts:
  - { name: pve1, cpus: 32, memory: 128GiB, bridges: [{ name: vmbr0, dhcp: 10.10.0.0/16 }] }
  - { name: pve2, cpus: 32, memory: 128GiB, bridges: [{ name: vmbr0, dhcp: 10.10.0.0/16 }] }
storages:
  - { name: local, type: dir, content: [iso, import], size: 200GiB }
  - { name: local-lvm, type: lvmthin, content: [images], size: 900GiB }
users:
  - id: pvescaler@pve
    tokens: [{ id: server, secret: 00000000-0000-4000-8000-000000000001, privsep: false }]
acl: [{ path: /, role: Administrator, user: pvescaler@pve }]
urls:
  - { url: https://images.example/noble-with-agent.img, size: 600MiB, virtualSize: 3584MiB }
vms:
  - { id: 1250, host: pve1, running: true, config: { name: fake-1, memory: 2048, cores: 2, scsi0: "local-lvm:32" } }
`;

const CONFIG = `
apiVersion: pvescaler.dev/v1alpha1
cluster: { name: homelab, kubeconfig: /home/kubeconfig }
state: { path: /var/lib/pvescaler/state.db }
http: { health: "127.0.0.1:8080", dashboard: "127.0.0.1:8081", dashboardTokenFile: /home/token }
intervals: { reconcile: 5s }
proxmox:
  lab:
    endpoints: ["https://127.0.0.1:8006"]
    tls: { insecure: true }
    token: { id: "pvescaler@pve!server", secretFile: /etc/pvescaler/token }
    vmIds: 1251-1350
    storage: { images: local, seeds: local, disks: local-lvm }
images:
  noble: { url: "https://images.example/noble-with-agent.img", unverified: true }
templates:
  worker: { name: kubeadm-worker, id: 9000, image: noble, kubeadm: { version: 1.34.2 } }
  ubuntu: { name: ubuntu-2204-cloud-template, id: 9010, image: noble, packages: [htop] }
join:
  kubeadm: { packages: [containerd, kubeadm, kubelet] }
pools:
  - name: workers
    from: { image: noble }
    size: { cpu: 2, memory: 4Gi, disk: 20Gi }
    limits: { min: 0, max: 10 }
  - name: servers
    from: { image: noble }
    size: { cpu: 2, memory: 4Gi, disk: 20Gi }
    limits: { min: 0, max: 1 }
`;

const POD = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web-0', namespace: 'default' },
  spec: { containers: [{ name: 'web', image: 'registry.example/web' }] },
});
/** A Node for VM 1250, as `--fake-nodes` creates it. */
const NODE = JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'fake-1' } });
/** In place of `kubectl apply`. */
const CREATE_POD = `
import { readFileSync } from 'node:fs';
const { clusters: [{ cluster }], users: [{ user }] } = JSON.parse(readFileSync('home/kubeconfig', 'utf8'));
const { status } = await fetch(\`\${cluster.server}/api/v1/namespaces/default/pods\`, {
  method: 'POST',
  headers: { authorization: \`Bearer \${user.token}\`, 'content-type': 'application/json' },
  body: readFileSync('pod.json'),
});
if (status !== 201) throw new Error(\`status \${status}\`);
`;

/** Starts and stops `serve` as the unit of the guide does. */
const SYSTEMCTL = `
stop() { test ! -f serve.pid || { kill "$(cat serve.pid)"; while kill -0 "$(cat serve.pid)"; do sleep 0.1; done; rm serve.pid; }; }
start() {
  : > unit.log
  pvescaler serve --config etc/pvescaler/config.yaml >> unit.log 2>&1 &
  echo $! > serve.pid
  until [[ $(cat unit.log) == *"drives the fleet"* ]]; do kill -0 $! || exit 1; sleep 0.1; done
}
cd "$SITE" 2> /dev/null
case $1 in
  start | enable) start ;;
  stop) stop 2> /dev/null ;;
  restart) stop 2> /dev/null; start ;;
  reload) kill -HUP "$(cat serve.pid)" ;;
esac`;

const PORTS = ['8006', '6443', '8080', '8081', '2201'];
/** Only ends a failed run: the machine may be loaded. */
export const SITE_LIMIT_MS = 600_000;
const PRELUDE = `
set -e -o pipefail
exec 9> trace
BASH_XTRACEFD=9
set -x`;

/** The program, the subcommands and the options of a command. */
function shapeOf(words: ShellCommand): readonly string[] {
  const [program = '', ...others] = words[0] === 'npx' ? words.slice(1) : words;
  const kept = others.flatMap((word) => /^(?:-[\w-]+|[a-z]+$)/.exec(word)?.[0] ?? []);
  return [basename(program), ...kept];
}

/** Commands of the documentation that are not in the trace of bash, with the same subcommands and options. */
function findMissing(site: Site, trace: string): readonly string[] {
  const lines = [...trace.matchAll(/^\++ (.*)$/gm)].map(([, line = '']) => line);
  const ran = lines.flatMap(splitScript).map(shapeOf);
  return site.steps
    .flatMap((step) => (typeof step === 'string' ? [] : splitScript(readSection(step.at))))
    .map(shapeOf)
    .filter(
      (words) =>
        !ran.some((one) => one[0] === words[0] && words.every((word) => one.includes(word))),
    )
    .map((words) => words.join(' '));
}

function applyChanges({ at, changes }: SiteSection): string {
  let script = readSection(at);
  for (const [documented, run] of changes) {
    if (!script.includes(documented)) throw new Error(`${at} does not contain ${documented}`);
    script = script.replaceAll(documented, run);
  }
  return script;
}

function write(file: string, text: string, mode = 0o644): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text, { mode });
}

/** What the commands read, and the folders that they expect. */
function writeFiles(folder: string, localize: (text: string) => string): void {
  for (const name of ['deploy', 'examples'])
    cpSync(join(root, name), join(folder, name), { recursive: true });
  for (const name of globSync('examples/**/*.yaml', { cwd: root }))
    write(join(folder, name), localize(readFileSync(join(root, name), 'utf8')));
  const { blocks } = readDocument('docs/guides/in-cluster.md');
  const values = blocks.find(({ language }) => language === 'yaml');
  const files = {
    'hosts.yaml': HOSTS,
    'config.yaml': localize(CONFIG),
    'pod.json': POD,
    'node.json': NODE,
    'create-pod.mjs': CREATE_POD,
    'values.yaml': values?.text ?? '',
  };
  for (const [name, text] of Object.entries(files)) write(join(folder, name), text);
  write(join(folder, 'home/token'), '0123456789abcdef\n', 0o600);
  for (const name of ['etc/ssh', 'tmp', 'usr/local/bin', 'var/lib'])
    mkdirSync(join(folder, name), { recursive: true });
}

/** `npx pvescaler` and `pvescaler` are the built program; what is not run does nothing. */
function writePrograms(folder: string, { kubectl = ':', helm = ':' }: ClusterPrograms): void {
  const script = (name: string, text: string) =>
    write(join(folder, name), `#!/usr/bin/env bash\n${text}\n`, 0o755);
  const [program, args] = commandLine([]);
  for (const name of ['bin/pvescaler', 'build/pvescaler'])
    script(name, `exec "${program}" ${args.join(' ')} "$@"`);
  script('bin/npx', 'exec "$@"');
  const notRun = Object.keys(NOT_RUN);
  for (const name of new Set([...notRun, ...REPLACED].map((key) => key.split(' ')[0] ?? ''))) {
    const real = { kubectl, helm }[name] ?? ':';
    const cases = notRun.filter((key) => key.startsWith(`${name} `)).map((key) => `"${key}"*) ;;`);
    script(`bin/${name}`, `case "${name} $*" in\n${cases.join('\n')}\n*) ${real} "$@" ;;\nesac`);
  }
  script('bin/systemctl', SYSTEMCTL);
  script('bin/scp', 'echo simulated > "${@: -1}"');
}

export interface SiteRun {
  readonly exitCode: number | null;
  /** What was printed last. */
  readonly output: string;
  /** Commands of the sections that did not run. */
  readonly missing: readonly string[];
}

export async function runSite(site: Site, programs: ClusterPrograms = {}): Promise<SiteRun> {
  const folder = aFolder();
  const ports = await freePorts(PORTS.length);
  const localize = (text: string) =>
    text
      .replaceAll(/(?<=(?:127\.0\.0\.1|localhost):| -p )\d+/g, (port) =>
        String(ports[PORTS.indexOf(port)] ?? port),
      )
      .replaceAll(/(?<![\w.}/-])\/(?:etc|home|tmp|usr|var)\//g, `${folder}$&`);
  writeFiles(folder, localize);
  writePrograms(folder, programs);
  if (programs.kubeconfig !== undefined)
    cpSync(programs.kubeconfig, join(folder, 'home/kubeconfig'));
  const steps = site.steps.map((step) => (typeof step === 'string' ? step : applyChanges(step)));
  const script = `${PRELUDE}\n${localize(steps.join('\n'))}`;
  // The guides remove folders of the system.
  const outside = /(?<![\w.}/-])\/(?!dev\/null)\w+/.exec(script.replaceAll(`${folder}/`, ''));
  if (outside !== null) throw new Error(`the script would use ${outside[0]}`);
  const shell = spawn('bash', ['-c', script], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: `${join(folder, 'bin')}:${process.env['PATH']}`,
      HOME: join(folder, 'home'),
      SITE: folder,
      NODE: process.execPath,
      KUBECTL: programs.kubectl,
      PVESCALER_CONFIG: join(folder, 'etc/pvescaler/config.yaml'),
    },
    // A process group of its own, so that nothing is left of it.
    detached: true,
  });
  const end = () => {
    try {
      process.kill(-shell.pid!, 'SIGKILL');
    } catch {
      // Nothing is left.
    }
  };
  onTestFinished(end);
  const limit = setTimeout(end, SITE_LIMIT_MS);
  const output: string[] = [];
  for (const stream of [shell.stdout, shell.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => output.push(text));
  const closed = once(shell, 'close');
  const [exitCode] = (await once(shell, 'exit')) as [number | null];
  clearTimeout(limit);
  end();
  await closed;
  const trace = readFileSync(join(folder, 'trace'), 'utf8');
  const logs = globSync('{serve,unit}.log', { cwd: folder }).map((name) =>
    readFileSync(join(folder, name), 'utf8'),
  );
  return {
    exitCode,
    output: [trace, ...logs, output.join('')].map((text) => text.slice(-3_000)).join('\n---\n'),
    missing: findMissing(site, trace),
  };
}
