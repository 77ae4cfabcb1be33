// SPDX-License-Identifier: Apache-2.0
// The SSH client over loopback sockets, with the SSH server of the simulators.
import { createHash } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import type { RemoteShell } from '../../src/ports/remote-shell.ts';
import {
  createSshKey,
  createSshServer,
  type SshServerOptions,
} from '../../src/sim/ssh/ssh-server.ts';
import {
  type HostKeyTrust,
  openSshShell,
  type SshLogin,
  type SshShellOptions,
  type UnknownHostKey,
} from '../../src/ssh/index.ts';
import { openSocket } from '../../src/system/index.ts';

const HOST_KEY = createSshKey();
const CLIENT_KEY = createSshKey('me');
const [TYPE = '', BASE64 = ''] = HOST_KEY.public.split(' ');
const FINGERPRINT = `SHA256:${createHash('sha256').update(Buffer.from(BASE64, 'base64')).digest('base64').replace(/=+$/, '')}`;
const PINNED: HostKeyTrust = { kind: 'fingerprints', fingerprints: [FINGERPRINT] };

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

function keyLogin(text = CLIENT_KEY.private) {
  return { kind: 'key' as const, path: '/keys/id', readKey: () => Promise.resolve(text) };
}

async function start(
  serverOptions: Partial<SshServerOptions> = {},
  clientOptions: Partial<SshShellOptions> = {},
) {
  const files = new Map<string, { bytes: Uint8Array; mode: string }>();
  const server = createSshServer({
    hostKey: HOST_KEY.private,
    authorizedKeys: [CLIENT_KEY.public],
    run: ({ command, input }) =>
      Promise.resolve({ code: 3, out: `${command}|${Buffer.from(input).toString()}`, err: 'é' }),
    files: {
      write: (path, bytes, mode) => void files.set(path, { bytes, mode }),
      remove: (path) => files.delete(path),
    },
    ...serverOptions,
  });
  const port = await server.listen(0, '127.0.0.1');
  const clock = new VirtualClock();
  let sockets = 0;
  const shell: RemoteShell = openSshShell({
    host: '127.0.0.1',
    port,
    user: 'root',
    login: keyLogin(),
    trust: PINNED,
    openSocket: (address, signal) => {
      sockets += 1;
      return openSocket(address, signal);
    },
    clock,
    ...clientOptions,
  });
  cleanups.push(async () => {
    await shell.close();
    await server.close();
  });
  return { server, shell, clock, files, port, sockets: () => sockets };
}

const call = (command: string) => ({ command, timeoutMs: 30_000 });

describe('an SSH shell', () => {
  it('runs a command with input and returns output, error output and exit code', async () => {
    const { shell } = await start();
    await expect(shell.run({ ...call("echo 'x'"), input: 'secret\n' })).resolves.toEqual({
      exitCode: 3,
      output: "echo 'x'|secret\n",
      errorOutput: 'é',
    });
  });

  it('passes a megabyte of input and output', async () => {
    const text = 'x'.repeat(2 ** 20);
    const { shell } = await start();
    const { output } = await shell.run({ ...call('cat'), input: text });
    expect(output).toHaveLength(text.length + 'cat|'.length);
  });

  it('runs many commands over one connection, at most eight at a time', async () => {
    const running = { now: 0, most: 0 };
    const waiting: (() => void)[] = [];
    const { shell, sockets } = await start({
      run: async () => {
        running.now += 1;
        running.most = Math.max(running.most, running.now);
        if (running.now === 8) for (const wake of waiting.splice(0)) wake();
        else if (running.now < 8) await new Promise<void>((resolve) => waiting.push(resolve));
        running.now -= 1;
        return { code: 0, out: '', err: '' };
      },
    });
    const results = Array.from({ length: 16 }, () => shell.run(call('x')));
    expect((await Promise.all(results)).every(({ exitCode }) => exitCode === 0)).toBe(true);
    expect(running.most).toBe(8);
    expect(sockets()).toBe(1);
  });

  it('writes and removes files, readable by their owner only', async () => {
    const { shell, files } = await start();
    const bytes = new Uint8Array(100_000).fill(7);
    const at = { path: '/var/tmp/a b', timeoutMs: 30_000 };
    await shell.writeFile({ ...at, bytes });
    expect(files.get('/var/tmp/a b')?.mode).toBe('0600');
    expect(Buffer.from(files.get('/var/tmp/a b')?.bytes ?? [])).toEqual(Buffer.from(bytes));
    await shell.removeFile(at);
    expect(files.size).toBe(0);
    await expect(shell.removeFile(at)).resolves.toBeUndefined();
  });

  it('rejects when the connection is lost during a command, and connects again for the next', async () => {
    const { server, shell, sockets } = await start({
      run: ({ command }) => {
        if (command === 'drop') server.dropConnections();
        return Promise.resolve({ code: 0, out: 'ok', err: '' });
      },
    });
    const lost = shell.run(call('drop'));
    await expect(lost).rejects.toMatchObject({ code: 'SSH_UNREACHABLE' });
    await expect(lost).rejects.toMatchObject({ facts: { requestSent: true } });
    await expect(shell.run(call('next'))).resolves.toMatchObject({ output: 'ok' });
    expect(sockets()).toBe(2);
  });

  it('rejects at the time limit of a command, which goes on, and keeps the connection', async () => {
    let reached: () => void = () => undefined;
    const hasReached = new Promise<void>((resolve) => {
      reached = resolve;
    });
    const { shell, clock, sockets } = await start({
      run: ({ command }) => {
        if (command !== 'hang') return Promise.resolve({ code: 0, out: 'ok', err: '' });
        reached();
        return new Promise(() => undefined);
      },
    });
    const hanging = shell.run({ command: 'hang', timeoutMs: 5_000 });
    const outcome = expect(hanging).rejects.toMatchObject({
      code: 'REQUEST_TIMED_OUT',
      facts: { requestSent: true },
    });
    await hasReached;
    await clock.advance(5_000);
    await outcome;
    await expect(shell.run(call('next'))).resolves.toMatchObject({ output: 'ok' });
    expect(sockets()).toBe(1);
  });

  it('rejects an unreachable host without having sent anything', async () => {
    const { shell, server } = await start();
    await server.close();
    await expect(shell.run(call('x'))).rejects.toMatchObject({
      code: 'SSH_UNREACHABLE',
      facts: { requestSent: false },
    });
  });

  it('gives up on a host that accepts the connection and says nothing', async () => {
    const { createServer } = await import('node:net');
    const silent = createServer((socket) => void socket.resume());
    await new Promise<void>((resolve) => {
      silent.listen(0, '127.0.0.1', resolve);
    });
    const address = silent.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const { shell, clock } = await start({}, { port });
    const work = shell.run({ command: 'x', timeoutMs: 60_000 });
    const outcome = expect(work).rejects.toMatchObject({
      code: 'SSH_UNREACHABLE',
      facts: { requestSent: false },
    });
    await new Promise((resolve) => silent.once('connection', resolve));
    await clock.advance(20_000);
    await outcome;
    await new Promise((resolve) => silent.close(resolve));
  });

  it('rejects with CANCELLED when it is closed or the signal aborts', async () => {
    const { shell } = await start();
    const signal = AbortSignal.abort();
    await expect(shell.run({ ...call('x'), signal })).rejects.toMatchObject({ code: 'CANCELLED' });
    await shell.close();
    await expect(shell.run(call('x'))).rejects.toMatchObject({ code: 'CANCELLED' });
  });

  it('sends nothing when the caller may no longer send', async () => {
    const seen: string[] = [];
    const { shell } = await start({
      run: ({ command }) => {
        seen.push(command);
        return Promise.resolve({ code: 0, out: '', err: '' });
      },
    });
    await expect(shell.run({ ...call('x'), maySend: () => false })).rejects.toMatchObject({
      code: 'CANCELLED',
      facts: { requestSent: false },
    });
    await expect(
      shell.writeFile({
        path: '/f',
        bytes: new Uint8Array(1),
        timeoutMs: 1_000,
        maySend: () => false,
      }),
    ).rejects.toMatchObject({ code: 'CANCELLED', facts: { requestSent: false } });
    expect(seen).toEqual([]);
  });

  it('keeps the input back when the right to send is lost after the command', async () => {
    const inputs: string[] = [];
    const { shell } = await start({
      run: ({ input }) => {
        inputs.push(Buffer.from(input).toString());
        return Promise.resolve({ code: 0, out: '', err: '' });
      },
    });
    let asked = 0;
    const maySend = () => {
      asked += 1;
      return asked === 1;
    };
    const work = shell.run({ ...call('sh -s'), input: 'reboot\n', maySend });
    await expect(work).rejects.toMatchObject({ code: 'CANCELLED', facts: { requestSent: true } });
    expect(inputs.join('')).not.toContain('reboot');
  });

  it('keeps the input back when the call ended while the command was being sent', async () => {
    const inputs: string[] = [];
    const { shell, files } = await start({
      run: ({ input }) => {
        inputs.push(Buffer.from(input).toString());
        return Promise.resolve({ code: 0, out: '', err: '' });
      },
    });
    await shell.run(call('connect'));
    const ended = new AbortController();
    const maySend = () => {
      queueMicrotask(() => ended.abort());
      return true;
    };
    const work = shell.run({ ...call('sh -s'), input: 'reboot\n', maySend, signal: ended.signal });
    await expect(work).rejects.toMatchObject({ code: 'CANCELLED' });
    const late = new AbortController();
    const at = { path: '/f', bytes: new Uint8Array(1), timeoutMs: 30_000, signal: late.signal };
    const writing = shell.writeFile(at);
    setImmediate(() => late.abort());
    await expect(writing).rejects.toMatchObject({ code: 'CANCELLED' });
    for (let i = 0; i < 3; i += 1) await shell.run(call('next'));
    expect(inputs.join('')).not.toContain('reboot');
    expect([...files.keys()]).toEqual([]);
  });
});

describe('the login', () => {
  it('is refused with the name of the key, and nothing is sent', async () => {
    const { shell } = await start({ authorizedKeys: [] });
    await expect(shell.run(call('x'))).rejects.toMatchObject({
      code: 'SSH_LOGIN_REFUSED',
      message: expect.stringContaining('root with key /keys/id'),
      facts: { requestSent: false },
    });
  });

  it('reports a key file that cannot be read or is none', async () => {
    const { shell } = await start({}, { login: keyLogin('no key') });
    await expect(shell.run(call('x'))).rejects.toMatchObject({
      code: 'SECRET_UNREADABLE',
      message: expect.stringContaining('/keys/id'),
    });
    const missing: SshLogin = { ...keyLogin(), readKey: () => Promise.reject(new Error('ENOENT')) };
    const second = await start({}, { login: missing });
    await expect(second.shell.run(call('x'))).rejects.toMatchObject({ code: 'SECRET_UNREADABLE' });
  });

  it('reports an agent that does not answer', async () => {
    const login: SshLogin = { kind: 'agent', socketPath: '/nonexistent/agent.sock' };
    const { shell } = await start({}, { login });
    await expect(shell.run(call('x'))).rejects.toMatchObject({ code: 'SSH_LOGIN_REFUSED' });
  });
});

describe('the host key', () => {
  function knownHosts(text: string | undefined, answer?: boolean) {
    const asked: UnknownHostKey[] = [];
    const appended: string[] = [];
    const trust: HostKeyTrust = {
      kind: 'known-hosts',
      path: '/home/me/.ssh/known_hosts',
      read: () => Promise.resolve(text),
      ...(answer !== undefined && {
        firstUse: {
          confirm: (key: UnknownHostKey) => {
            asked.push(key);
            return Promise.resolve(answer);
          },
          append: (line: string) => {
            appended.push(line);
            return Promise.resolve();
          },
        },
      }),
    };
    return { trust, asked, appended };
  }
  const NOT_TRUSTED = { code: 'SSH_HOST_KEY_NOT_TRUSTED', facts: { requestSent: false } };

  it('is refused if it is not the configured one, with the fingerprint', async () => {
    const trust = { kind: 'fingerprints', fingerprints: ['SHA256:other'] } as const;
    const { shell } = await start({}, { trust });
    const work = shell.run(call('x'));
    await expect(work).rejects.toMatchObject(NOT_TRUSTED);
    await expect(work).rejects.toThrow(FINGERPRINT);
  });

  it('is trusted if the known hosts file has it', async () => {
    let port = 0;
    const { trust } = knownHosts(undefined);
    const read = () => Promise.resolve(`[127.0.0.1]:${port} ${TYPE} ${BASE64}\n`);
    const started = await start({}, { trust: { ...trust, read } as HostKeyTrust });
    port = started.port;
    await expect(started.shell.run(call('x'))).resolves.toMatchObject({ exitCode: 3 });
  });

  it('is refused without a terminal on first use, with the fingerprint and what to do', async () => {
    const { shell } = await start({}, knownHosts(undefined));
    const work = shell.run(call('x'));
    await expect(work).rejects.toMatchObject({
      ...NOT_TRUSTED,
      hint: expect.stringContaining('ssh-keyscan'),
    });
    await expect(work).rejects.toThrow(FINGERPRINT);
  });

  it('is asked for on first use and remembered if it is confirmed', async () => {
    const { trust, asked, appended } = knownHosts('', true);
    const { shell, port } = await start({}, { trust });
    await expect(shell.run(call('x'))).resolves.toMatchObject({ exitCode: 3 });
    expect(asked).toEqual([
      { host: `[127.0.0.1]:${port}`, type: 'ssh-ed25519', fingerprint: FINGERPRINT },
    ]);
    expect(appended).toEqual([`[127.0.0.1]:${port} ${TYPE} ${BASE64}`]);
  });

  it('is refused on first use if it is not confirmed', async () => {
    const { trust, appended } = knownHosts('', false);
    const { shell } = await start({}, { trust });
    await expect(shell.run(call('x'))).rejects.toMatchObject(NOT_TRUSTED);
    expect(appended).toEqual([]);
  });

  it('lets no time limit pass while a person is asked', async () => {
    const { trust } = knownHosts('', true);
    let answer: (isTrusted: boolean) => void = () => undefined;
    let hasAsked: () => void = () => undefined;
    const asked = new Promise<void>((resolve) => {
      hasAsked = resolve;
    });
    const confirm = () => {
      hasAsked();
      return new Promise<boolean>((resolve) => {
        answer = resolve;
      });
    };
    const firstUse = { confirm, append: () => Promise.resolve() };
    const { shell, clock } = await start({}, { trust: { ...trust, firstUse } as HostKeyTrust });
    const work = shell.run({ command: 'x', timeoutMs: 5_000 });
    await asked;
    await clock.advance(600_000);
    answer(true);
    await expect(work).resolves.toMatchObject({ exitCode: 3 });
  });

  it.each([
    ['changed', (name: string) => `${name} ${createSshKey().public}\n`, 'another key'],
    ['revoked', (name: string) => `@revoked ${name} ${TYPE} ${BASE64}\n`, 'revokes'],
  ])('is refused without a question if it is %s', async (_, line, text) => {
    let port = 0;
    const { trust, asked } = knownHosts('', true);
    const read = () => Promise.resolve(line(`[127.0.0.1]:${port}`));
    const started = await start({}, { trust: { ...trust, read } as HostKeyTrust });
    port = started.port;
    const work = started.shell.run(call('x'));
    await expect(work).rejects.toMatchObject(NOT_TRUSTED);
    await expect(work).rejects.toThrow(text);
    expect(asked).toEqual([]);
  });
});
