// SPDX-License-Identifier: Apache-2.0
// The first step of every npm script: `node scripts/ensure.mjs -- command…` installs the packages of the lock file when
// they are missing, puts Node 24 first in PATH, builds the CLI, then runs the command. Plain JavaScript for Node 18 and
// later, because it runs before Node 24 is installed.
import { spawn, spawnSync } from 'node:child_process';
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

/** Compares npm's own record of the installed packages with the lock file; returns the first difference. */
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
  const npm = spawnSync(
    'npm',
    ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'],
    {
      cwd: root,
      stdio: ['ignore', 2, 2],
      shell: process.platform === 'win32',
    },
  );
  if (npm.error) fail(`npm could not be started: ${npm.error.message}`);
  if (npm.status !== 0)
    fail('npm ci failed; its output is above. The usual cause is a missing network connection.');
}

function versionOf(node) {
  const run = spawnSync(node, ['--version'], { encoding: 'utf8' });
  return run.status === 0 ? run.stdout.trim() : undefined;
}

function isNewEnough(version) {
  const [major = 0, minor = 0] = (version ?? '').replace(/^v/, '').split('.').map(Number);
  return major > OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor >= OLDEST_NODE[1]);
}

/** The folder to put first in PATH, so that every child process finds a Node that can run TypeScript. */
function nodeFolder() {
  const local = join(root, 'node_modules', '.bin', 'node');
  if (existsSync(local) && isNewEnough(versionOf(local))) return dirname(local);
  if (isNewEnough(process.version)) return dirname(process.execPath);
  return fail(
    `Node ${OLDEST_NODE.join('.')} or newer is required, this is ${process.version}, and the Node of ` +
      'package.json is not installed. Install scripts are probably disabled ' +
      '(npm config get ignore-scripts): enable them and run npm ci again.',
  );
}

function run(command, args, path) {
  const child = spawnSync(command, args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, PATH: path },
  });
  if (child.error) fail(`${command} could not be started: ${child.error.message}`);
  if (child.signal) fail(`${command} was terminated by ${child.signal}`);
  return child.status ?? 1;
}

/**
 * Waits for the command also after Ctrl-C, so that it can end in order. A terminal sends the signal to both; everyone else
 * sends it only to this process.
 */
function runToEnd(command, args, path) {
  const child = spawn(command, args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, PATH: path },
  });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.on(signal, () => {
      if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal);
    });
  child.on('error', (error) => fail(`${command} could not be started: ${error.message}`));
  child.on('exit', (code, signal) => {
    if (signal) fail(`${command} was terminated by ${signal}`);
    process.exit(code ?? 1);
  });
}

function main() {
  install();
  const bin = join(root, 'node_modules', '.bin');
  const path = [nodeFolder(), bin, process.env.PATH].join(process.platform === 'win32' ? ';' : ':');
  if (run('node', ['scripts/build.mjs'], path) !== 0)
    fail('the build failed; the output of esbuild is above');
  const [command, ...args] = process.argv.slice(process.argv.indexOf('--') + 1);
  if (process.argv.includes('--') && command !== undefined) runToEnd(command, args, path);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
