// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Bug, Unreachable } from '../ports/errors.ts';
import { createLog, type LogOptions } from './log.ts';

function aLog(overrides: Partial<LogOptions> = {}) {
  const lines: string[] = [];
  const log = createLog({
    level: 'info',
    format: 'json',
    write: (line) => lines.push(line),
    now: () => Date.UTC(2026, 0, 2, 3, 4, 5),
    ...overrides,
  });
  return { log, lines, parsed: () => lines.map((line) => JSON.parse(line) as unknown) };
}

const TOKEN = 'abcdef.0123456789abcdef';

describe('createLog', () => {
  it('writes one JSON object per line with level, time and fields', () => {
    const { log, parsed } = aLog();
    log.debug('below the level');
    log.with({ pool: 'small' }).warn('pool is backed off', { seconds: 60 });
    expect(parsed()).toEqual([
      {
        level: 'warn',
        time: '2026-01-02T03:04:05.000Z',
        message: 'pool is backed off',
        pool: 'small',
        seconds: 60,
      },
    ]);
  });

  it('writes text lines in text format', () => {
    const { log, lines } = aLog({ format: 'text' });
    log.info('ready', { name: 'a b', vmId: 1250 });
    expect(lines).toEqual(['2026-01-02T03:04:05.000Z INFO  ready name="a b" vmId=1250\n']);
  });

  it('writes our errors as data, without their cause', () => {
    const { log, parsed, lines } = aLog();
    const cause = new Error('PVEAPIToken=scaler@pve!k8s=1-2-3 was refused');
    log.error('request failed', {
      error: new Unreachable('PVE_UNREACHABLE', 'no answer', { cause }),
    });
    log.error('bug', { error: new Bug('BUG', 'unexpected state') });
    expect(parsed()).toMatchObject([
      { error: { class: 'Unreachable', code: 'PVE_UNREACHABLE', message: 'no answer' } },
      {
        error: { class: 'Bug', stack: expect.stringContaining('Bug: unexpected state') as unknown },
      },
    ]);
    expect(lines.join('')).not.toContain('refused');
  });

  it.each([
    ['a top-level field', { token: TOKEN }],
    ['a nested field', { join: { secret: 'hunter2-hunter2' } }],
    ['a field nested twice', { a: { b: { password: 'hunter2-hunter2' } } }],
  ])('masks a secret in %s', (_where, fields) => {
    for (const format of ['json', 'text'] as const) {
      const { log, lines } = aLog({ format });
      log.info('x', fields);
      expect(lines.join('')).not.toMatch(/hunter2|0123456789abcdef/);
      expect(lines.join('')).toContain('••••');
    }
  });

  it.each([
    `joined with ${TOKEN}`,
    `K10${'ab'.repeat(32)}::${TOKEN}`,
    `K10${'ab'.repeat(32)}::server:swordfish`,
    'PVEAPIToken=scaler@pve!k8s=12345678-swordfish',
    'Authorization: Bearer swordfish.swordfish',
    'PVE:root@pam:6655AABB::swordfish==',
  ])('masks text that looks like a secret: %s', (message) => {
    const { log, lines } = aLog();
    log.info(message);
    expect(lines.join('')).not.toMatch(/swordfish|0123456789abcdef/);
  });
});
