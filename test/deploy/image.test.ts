// SPDX-License-Identifier: Apache-2.0
// Follows the Dockerfile without Docker: copies its files, runs its build and starts the result.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { COMMAND_TIMEOUT_MS, root } from '../support/pvescaler.ts';
import { readRepoFile } from './manifests.ts';

interface Copy {
  readonly fromBuild: boolean;
  readonly sources: readonly string[];
  readonly target: string;
}

const workDir = join(tmpdir(), `pvescaler-image-${process.pid}`);
const [head = '', build = '', final = ''] = readRepoFile('Dockerfile').split(/^FROM /m);
const manifest = JSON.parse(readRepoFile('package.json'));

function readCopies(stage: string): readonly Copy[] {
  return [...stage.matchAll(/^COPY (--from=build )?(.+)$/gm)].map(([, from, words = '']) => {
    const paths = words.split(' ');
    return {
      fromBuild: from !== undefined,
      sources: paths.slice(0, -1),
      target: paths.at(-1) ?? '',
    };
  });
}

/** Like COPY: a target with a trailing slash is a directory that receives the files. */
function copyFiles({ sources, target }: Copy, from: string, to: string): void {
  for (const source of sources) {
    const name = target.endsWith('/') ? join(target, source.split('/').at(-1) ?? '') : target;
    cpSync(join(from, source.replace(/^\/src\//, '')), join(to, name), { recursive: true });
  }
}

function run(command: string, args: readonly string[], cwd: string) {
  const path = `${join(root, 'node_modules/.bin')}:${process.env['PATH']}`;
  return spawnSync(command, args, {
    cwd,
    encoding: 'utf8',
    env: { PATH: path, HOME: workDir, NODE_ENV: 'production' },
    timeout: COMMAND_TIMEOUT_MS,
  });
}

describe('the Dockerfile', () => {
  const [stage, image] = [join(workDir, 'src'), join(workDir, 'app')];

  beforeAll(() => {
    for (const folder of [stage, image]) mkdirSync(folder, { recursive: true });
    for (const copy of readCopies(build)) copyFiles(copy, root, stage);
    // Replaces `npm ci`.
    symlinkSync(join(root, 'node_modules'), join(stage, 'node_modules'));
  });
  afterAll(() => rmSync(workDir, { recursive: true, force: true }));

  it('uses the Node.js version of the package, pinned by one digest', () => {
    const [base, ...others] = readRepoFile('Dockerfile').match(/^FROM \S+/gm) ?? [];
    const [tag, digest] = base?.split('@') ?? [];
    expect(tag).toBe(`FROM node:${manifest.devDependencies.node}-bookworm-slim`);
    expect(digest).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(others).toEqual([base]);
    expect(head).toMatch(/^# syntax=/);
  });

  it('copies only files that exist and that .dockerignore allows', () => {
    const open = readRepoFile('.dockerignore').match(/(?<=^!).+$/gm) ?? [];
    const sources = [...readCopies(build), ...readCopies(final)]
      .filter(({ fromBuild }) => !fromBuild)
      .flatMap((copy) => copy.sources);
    expect(sources.length).toBeGreaterThan(4);
    expect(sources.filter((source) => !existsSync(join(root, source)))).toEqual([]);
    const roots = new Set(sources.map((source) => source.split('/')[0] ?? ''));
    expect([...roots].toSorted()).toEqual(open.toSorted());
  });

  it('builds the package from the copied files', () => {
    const commands = build.match(/(?<=^RUN ).+$/gm) ?? [];
    expect(commands).toEqual([expect.stringMatching(/^npm ci --ignore-scripts /), 'npm run build']);
    expect(manifest.scripts).toHaveProperty('build');
    const built = run('npm', ['run', 'build'], stage);
    expect(built.status, built.stderr).toBe(0);
    expect(existsSync(join(stage, 'dist/main.js'))).toBe(true);
  });

  it('produces an image without node_modules', () => {
    for (const copy of readCopies(final)) copyFiles(copy, copy.fromBuild ? stage : root, image);
    expect(existsSync(join(image, 'node_modules'))).toBe(false);
    expect(final).toMatch(/^ENTRYPOINT \["pvescaler"\]$/m);
    const [, entry = ''] = /ln -s \/app\/(\S+) \/usr\/local\/bin\/pvescaler$/m.exec(final) ?? [];
    const version = run('node', [entry, '--version'], image);
    expect(version.stdout.trim(), version.stderr).toBe(manifest.version);
    const config = join(root, 'deploy/server/config.yaml');
    const valid = run('node', [entry, 'config', 'validate', config], image);
    expect(valid.status, valid.stderr).toBe(0);
  });

  it('starts the server as an unprivileged user with a volume for its state', () => {
    expect(final).toMatch(/^CMD \["serve"\]$/m);
    expect(final).toMatch(/^USER [1-9]\d*:[1-9]\d*$/m);
    expect(final).toMatch(/^VOLUME \/var\/lib\/pvescaler$/m);
    const [, owner] = /install -d -o (\d+) -g \d+ \/var\/lib\/pvescaler/.exec(final) ?? [];
    expect(/^USER (\d+)/m.exec(final)?.[1]).toBe(owner);
  });

  it('checks the health of a container by a valid program', () => {
    const [, list = '[]'] = /^HEALTHCHECK .*\\\n\s+CMD (\[.+\])$/m.exec(final) ?? [];
    const [program = '', ...args] = JSON.parse(list) as string[];
    expect(program).toBe('node');
    // Nothing listens on the port here, so the container would be unhealthy.
    const check = run(program, [args[0]!, args[1]!.replace(':8080/', ':1/')], image);
    expect([check.status, check.stderr]).toEqual([1, '']);
  });
});
