// SPDX-License-Identifier: Apache-2.0
// `npm run demo`: `pvescaler serve` on a simulated Proxmox VE with three hosts and a simulated Kubernetes cluster without
// nodes. It plays a day in a few minutes, then waits for a person's load until Ctrl-C. `--once` plays it at maximum speed
// and ends. Exits with 0 only if every pod ran and nothing is left behind.
import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { systemClock } from '../src/system/index.ts';
import { ClusterAutoscaler } from './demo/cluster-autoscaler.ts';
import type { DemoMode } from './demo/config.ts';
import { watchLauncher } from './demo/launcher.ts';
import { SCENES, type Scene, type Stage } from './demo/scenes.ts';
import { type DemoSite, OTHER_VM_IDS, startDemoSite } from './demo/site.ts';
import { Timeline } from './demo/timeline.ts';
import { addLoad, removeLoad } from './demo/workloads.ts';

/** Only ends a demo that hangs: the machine may be loaded. */
const TIMEOUT_MS = 300_000;
/** A person who drains nodes or adds pods during the day may prevent what a scene waits for. */
const DAY_TIMEOUT_MS = 90_000;
const POLL_MS = 25;
const IDLE = 'idle';
const HELP = `npm run demo -- [options]

Plays a day on simulated Proxmox hosts and a simulated Kubernetes cluster, then waits for your load until Ctrl-C.

  --once            play at maximum speed, then end; exit code 0 only if every pod ran and nothing is left behind
  --mode MODE       standalone (default), or externalgrpc: behind a scripted Cluster Autoscaler
  --scene SCENE     begin with: ${[...SCENES.map(({ name }) => name), IDLE].join(', ')}
`;

interface Options {
  readonly isOnce: boolean;
  readonly mode: DemoMode;
  readonly scenes: readonly Scene[];
}

/** Undefined when help was asked for. */
function readOptions(): Options | undefined {
  const { values } = parseArgs({
    options: {
      once: { type: 'boolean', default: false },
      mode: { type: 'string', default: 'standalone' },
      scene: { type: 'string', default: 'morning' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return undefined;
  const { mode, scene } = values;
  if (mode !== 'standalone' && mode !== 'externalgrpc')
    throw new Error(`--mode is standalone or externalgrpc, not ${mode}`);
  const first = SCENES.findIndex(({ name }) => name === scene);
  if (first === -1 && scene !== IDLE) throw new Error(`there is no scene ${scene}; see --help`);
  return { isOnce: values.once, mode, scenes: first === -1 ? [] : SCENES.slice(first) };
}

/** VMs, seeds, Nodes, pods and tokens that still exist. The image stays, as it does on real storage. */
function listLeftovers({ proxmox, kubernetes }: DemoSite): readonly string[] {
  const { vms, volumes } = proxmox.inspect();
  const names = (kind: string, objects: ReturnType<DemoSite['kubernetes']['list']>) =>
    objects.map(({ metadata }) => `${kind} ${metadata.name}`);
  return [
    ...vms.filter(({ id }) => !OTHER_VM_IDS.includes(id)).map(({ id }) => `VM ${id}`),
    ...volumes.filter(({ content }) => content !== 'import').map(({ id }) => id),
    ...names('Node', kubernetes.list('v1', 'nodes')),
    ...names('Pod', kubernetes.list('v1', 'pods')),
    ...names('Secret', kubernetes.list('v1', 'secrets')),
  ];
}

function createStage(
  site: DemoSite,
  timeline: Timeline,
  { isOnce, mode, stopped }: Options & { readonly stopped: Promise<never> },
): Stage {
  const sleep = (ms: number) => Promise.race([site.failed, stopped, systemClock.sleep(ms)]);
  return {
    site,
    timeline,
    isOnce,
    isStandalone: mode === 'standalone',
    sleep,
    pause: (seconds) => (isOnce ? Promise.resolve() : sleep(seconds * 1_000)),
    async waitUntil(what, isDone) {
      const timeoutMs = isOnce ? TIMEOUT_MS : DAY_TIMEOUT_MS;
      const deadline = performance.now() + timeoutMs;
      while (performance.now() < deadline) {
        timeline.update();
        if (await isDone()) return;
        await sleep(POLL_MS);
      }
      const text = `${what}: this did not happen within ${timeoutMs / 1_000} s`;
      if (isOnce) throw new Error(text);
      timeline.row(`${text}; the day goes on`);
    },
  };
}

const EXTERNAL = `A scripted Cluster Autoscaler decides about pods, over gRPC with mutual TLS. The page shows machines and their
reasons; it has no pending pods and no plan in this mode.
`;

function printAddresses(site: DemoSite): void {
  const { dashboardUrl, dashboardToken, healthUrl, kubeconfigPath } = site;
  console.log(`dashboard            ${dashboardUrl}/#token=${dashboardToken}
health and metrics   ${healthUrl}/readyz  ${healthUrl}/metrics
kubectl              export KUBECONFIG=${kubeconfigPath}

Ctrl-C ends the demo at any time and removes everything.
`);
}

async function playDay(stage: Stage, scenes: readonly Scene[]): Promise<void> {
  for (const { time, title, text, play, ...scene } of scenes) {
    const look = stage.isStandalone ? scene.look : (scene.lookExternal ?? scene.look);
    stage.site.showPanel({ title: `${time}, ${title}`, text, look, isIdle: false });
    console.log(`\n== ${time}, ${title}\n${wrap(text)}\n${wrap(`Look at: ${look}`)}\n`);
    stage.timeline.writeHeader();
    await stage.pause(2);
    await play(stage);
    await stage.pause(3);
  }
}

function wrap(text: string): string {
  return text.replace(/(.{1,98})(?: |$)/g, '   $1\n').trimEnd();
}

async function idle({ site, timeline, sleep }: Stage): Promise<void> {
  const text = 'Nothing runs now. Add load and watch machines come and go.';
  const look = 'the buttons below; they need the token of the link that the demo printed.';
  site.showPanel({ title: 'your turn', text, look, isIdle: true });
  console.log(`
== your turn
   ${text} Add it on the page, or with kubectl:
     export KUBECONFIG=${site.kubeconfigPath}
     kubectl create deployment more --image=example/app --replicas=5
     kubectl set resources deployment more --requests=cpu=1
     kubectl get pods -o wide
   Ctrl-C ends the demo and removes everything.
`);
  timeline.writeHeader();
  for (;;) {
    timeline.update();
    await sleep(POLL_MS);
  }
}

class Stopped extends Error {}

/** Rejects at the first signal, and when the npm that started the demo has ended. */
function waitForStop(): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  promise.catch(() => undefined);
  const stop = () => reject(new Stopped());
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop);
  watchLauncher(stop);
  return promise;
}

function startSite({ isOnce, mode }: Options): Promise<DemoSite> {
  return startDemoSite({
    // Slow enough to watch, or limited by intervals only.
    speed: isOnce ? 500 : 10,
    mode,
    actions: ({ kubernetes }) => ({
      load: { label: 'Add 4 pods of 1 CPU', run: () => addLoad(kubernetes) },
      unload: { label: 'Remove the added pods', run: () => removeLoad(kubernetes) },
    }),
  });
}

/** Resolves with what is left behind. */
async function play(stage: Stage, { isOnce, scenes }: Options): Promise<readonly string[]> {
  const { site } = stage;
  await playDay(stage, scenes);
  if (!isOnce) await idle(stage);
  const isClean = () => listLeftovers(site).length === 0;
  await stage.waitUntil('nothing is left behind', isClean).catch((error: unknown) => {
    if (error instanceof Stopped) throw error;
  });
  return listLeftovers(site);
}

/** Resolves with the exit code. */
async function main(options: Options): Promise<number> {
  const stopped = waitForStop();
  const site = await startSite(options);
  const timeline = new Timeline(site);
  const stage = createStage(site, timeline, { ...options, stopped });
  const stopClient = new AbortController();
  let client: Promise<void> | undefined;
  try {
    printAddresses(site);
    if (options.mode === 'externalgrpc') {
      console.log(EXTERNAL);
      const log = (text: string) => timeline.row(text);
      client = new ClusterAutoscaler(site, log).run(stopClient.signal);
    }
    return report(timeline, await play(stage, options));
  } catch (error) {
    if (error instanceof Stopped) return options.isOnce ? 130 : 0;
    console.error(`\nThe log of the daemon ends with:\n${site.readLogTail()}`);
    throw error;
  } finally {
    stopClient.abort();
    await client;
    await site.close();
    console.log('\nEvery process, port and file of the demo is gone.');
  }
}

/** The exit code: 0 only if every pod ran and nothing is left behind. */
function report({ ran, created, mostNodes }: Timeline, leftovers: readonly string[]): number {
  const left =
    leftovers.length === 0 ? 'Nothing was left behind.' : `LEFT BEHIND: ${leftovers.join(', ')}`;
  console.log(`\n${ran.size} of ${created.size} pods ran on at most ${mostNodes} nodes. ${left}`);
  return ran.size === created.size && leftovers.length === 0 ? 0 : 1;
}

try {
  const options = readOptions();
  if (options === undefined) process.stdout.write(HELP);
  else process.exitCode = await main(options);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
