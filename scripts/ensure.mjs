// SPDX-License-Identifier: Apache-2.0
// The first thing every npm script runs: `node scripts/ensure.mjs -- command…` installs what the lock
// file names when it is not installed yet, makes sure the command will run on Node 24, builds the CLI,
// then runs the command. Plain JavaScript for any Node from 18 on, because it runs before Node 24 is there.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const OLDEST_NODE = [24, 15];

function say(text) {
  process.stderr.write(`pvescaler: ${text}\n`);
}

function fail(text) {
  say(text);
  process.exit(1);
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}

/** Compares npm's own record of what it installed with the lock file; no stamp of ours can go stale. */
export function whyInstall(lock, installed) {
  if (installed === undefined) return 'node_modules is missing';
  for (const [path, wanted] of Object.entries(lock.packages)) {
    if (path === '') continue;
    const found = installed.packages?.[path];
    if (found === undefined) {
      if (wanted.optional || wanted.devOptional || wanted.peer) continue; // another platform's binary
      return `${path} is not installed`;
    }
    if (found.version !== wanted.version)
      return `${path} is ${found.version}, not ${wanted.version}`;
  }
  return undefined;
}

function install() {
  const lock = readJson(join(root, 'package-lock.json'));
  if (lock === undefined)
    fail('package-lock.json cannot be read. Restore it: git checkout package-lock.json');
  const why = whyInstall(lock, readJson(join(root, 'node_modules', '.package-lock.json')));
  if (why === undefined) return;
  say(`installing dependencies (${why}); about half a minute`);
  const npm = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  });
  if (npm.error) fail(`npm could not be started: ${npm.error.message}`);
  if (npm.status !== 0)
    fail('npm ci failed; its own words are above. The usual cause is no network.');
}

function versionOf(node) {
  const run = spawnSync(node, ['--version'], { encoding: 'utf8' });
  return run.status === 0 ? run.stdout.trim() : undefined;
}

function isNewEnough(version) {
  const [major = 0, minor = 0] = (version ?? '').replace(/^v/, '').split('.').map(Number);
  return major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1]);
}

/** The folder to put first in PATH, so that every child finds a Node that can run TypeScript. */
function nodeFolder() {
  const local = join(root, 'node_modules', '.bin', 'node');
  if (existsSync(local) && isNewEnough(versionOf(local))) return dirname(local);
  if (isNewEnough(process.version)) return dirname(process.execPath);
  return fail(
    `Node ${OLDEST_NODE.join('.')} or newer is needed, this is ${process.version}, and the one that ` +
      'package.json installs is missing. Install scripts are probably switched off ' +
      '(npm config get ignore-scripts): allow them and run npm ci again.',
  );
}

function run(command, args, path) {
  const child = spawnSync(command, args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, PATH: path },
  });
  if (child.error) fail(`${command} could not be started: ${child.error.message}`);
  if (child.signal) fail(`${command} was ended by ${child.signal}`);
  return child.status ?? 1;
}

function main() {
  install();
  const bin = join(root, 'node_modules', '.bin');
  const path = [nodeFolder(), bin, process.env.PATH].join(process.platform === 'win32' ? ';' : ':');
  if (run('node', ['scripts/build.mjs'], path) !== 0)
    fail('the build failed; its own words are above');
  const [command, ...args] = process.argv.slice(process.argv.indexOf('--') + 1);
  if (process.argv.includes('--') && command !== undefined)
    process.exitCode = run(command, args, path);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
