// SPDX-License-Identifier: Apache-2.0
// Ordinary calls, with deadlines and metadata.
import { describe, expect, it } from 'vitest';
import { VERSIONS } from './build.ts';
import { serverAddress, withGoClient } from './with-go-client.ts';

const SECOND = 1e9;
const HOUR = 3_600 * SECOND;

describe.each(VERSIONS)('grpc-go %s', (name, version) => {
  it(
    'reports the expected version',
    withGoClient(version, {}, async ({ process }) => {
      expect(await process.version()).toBe(name);
    }),
  );

  it(
    'makes a thousand calls on one connection',
    withGoClient(version, {}, async ({ go }) => {
      const { codes, response, header } = await go.call('NodeGroups', { count: 1_000 });
      expect(codes).toEqual({ OK: 1_000 });
      expect(response.nodeGroups).toMatchObject([{ id: 'workers' }]);
      expect(header).toMatchObject({ 'content-type': ['application/grpc'] });
      expect(await go.stats()).toMatchObject({ connections: 1, goAways: [] });
    }),
  );

  it(
    'makes two hundred concurrent calls',
    withGoClient(version, {}, async ({ go }) => {
      const many = { count: 10, parallel: 200, timeoutNs: 60 * SECOND };
      const { codes, message } = await go.call('NodeGroupNodes', {
        ...many,
        request: { id: 'workers' },
      });
      expect({ codes, message }).toEqual({ codes: { OK: 2_000 }, message: '' });
      expect(await go.stats()).toMatchObject({ connections: 1 });
    }),
  );

  it(
    'sends deadlines in every unit that it supports',
    withGoClient(version, {}, async ({ go }) => {
      // Microseconds, milliseconds, seconds, minutes, hours.
      for (const timeoutNs of [
        60 * SECOND,
        HOUR,
        48 * HOUR,
        4 * 8_766 * HOUR,
        200 * 8_766 * HOUR,
      ]) {
        const { code, message } = await go.call('NodeGroups', { timeoutNs });
        expect({ timeoutNs, code, message }).toEqual({ timeoutNs, code: 'OK', message: '' });
      }
      // Nanoseconds are used below 100 ms, which a busy machine may exceed.
      const late = 'DeadlineExceeded';
      let code = late;
      while (code === late) ({ code } = await go.call('NodeGroups', { timeoutNs: 0.099 * SECOND }));
      expect(code).toBe('OK');
    }),
  );

  it(
    'sends a user agent and arbitrary metadata',
    withGoClient(version, {}, async (fixture) => {
      const userAgent = 'cluster-autoscaler/1.36 (test)';
      const go = await fixture.process.dial({ target: serverAddress(fixture), userAgent });
      const metadata = [
        { name: 'x-request-id', value: 'a, b;c="d"' },
        { name: 'x-twice', value: '1' },
        { name: 'x-twice', value: '2' },
        { name: 'x-trace-bin', value: '\u0000\u0001\u00ff,\n' },
        { name: 'x-large', value: 'x'.repeat(8_192) },
      ];
      for (const subtype of ['', 'proto']) {
        const { codes } = await go.call('NodeGroups', { metadata, subtype, count: 20 });
        expect(codes).toEqual({ OK: 20 });
      }
      expect(await go.stats()).toMatchObject({ connections: 1 });
    }),
  );

  it(
    'refuses to send oversized metadata, as the settings demand, and continues',
    withGoClient(version, {}, async ({ go }) => {
      await go.call('NodeGroups');
      const metadata = [{ name: 'x-large', value: 'x'.repeat(20_000) }];
      const { code, message } = await go.call('NodeGroups', { metadata });
      expect(code).toBe('Internal');
      expect(message).toContain('16384');
      expect((await go.call('NodeGroups')).code).toBe('OK');
      expect(await go.stats()).toMatchObject({ connections: 1 });
    }),
  );
});
