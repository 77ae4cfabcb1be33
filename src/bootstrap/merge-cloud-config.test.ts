// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { mergeCloudConfig, parseCloudConfig } from './merge-cloud-config.ts';
import { unwrap } from './testing/a-seed.ts';

const config = (text: string) => parseCloudConfig(`#cloud-config\n${text}`);

describe('parseCloudConfig', () => {
  it('parses YAML like cloud-init', () => {
    expect(
      unwrap(config('ssh_pwauth: no\nwrite_files: [{permissions: 0644}]\nat: 2026-01-01\n')),
    ).toEqual({
      ssh_pwauth: false,
      write_files: [{ permissions: 0o644 }],
      at: '2026-01-01',
    });
    expect(unwrap(config(''))).toEqual({});
    expect(unwrap(parseCloudConfig('#cloud-config'))).toEqual({});
    expect(unwrap(parseCloudConfig('#cloud-config \r\na: 1\r\n'))).toEqual({ a: 1 });
  });

  it.each([
    ['#!/bin/sh\n', "must start with the line '#cloud-config'"],
    ['## template: jinja\n#cloud-config\n', "must start with the line '#cloud-config'"],
    ['#cloud-config-archive\n', "must start with the line '#cloud-config'"],
    ['#cloud-config\n- a\n', 'must be a mapping'],
    ['#cloud-config\na: [\n', 'is not valid YAML'],
    ['#cloud-config\na: 1\na: 2\n', 'is not valid YAML'],
    ['#cloud-config\na: !!binary aGk=\n', 'is not valid YAML'],
    ['#cloud-config\na: \ud800\n', 'contains invalid Unicode'],
    [
      '#cloud-config\nhostname: x\n',
      "must not set 'hostname': the host name must be the machine's name",
    ],
    ['#cloud-config\ncloud_final_modules: []\n', "must not set 'cloud_final_modules'"],
    ['#cloud-config\nruncmd: reboot\n', 'runcmd must be a list'],
    ['#cloud-config\nbootcmd: [{a: b}]\n', "entry 1 of the cloud-config's bootcmd"],
    ['#cloud-config\nruncmd:\n  - ls\n  - echo "a: b"\n', "entry 2 of the cloud-config's runcmd"],
  ])('refuses %j', (text, problem) => {
    expect(parseCloudConfig(text)).toEqual({
      ok: false,
      problem: expect.stringContaining(problem),
    });
  });
});

describe('mergeCloudConfig', () => {
  const ours = {
    write_files: [{ path: '/a' }],
    users: [{ name: 'ubuntu' }],
    packages: ['curl'],
    apt: { http_proxy: 'http://p' },
    package_update: true,
    runcmd: [['ours']],
  };

  it('concatenates lists, merges maps and puts our command last', () => {
    const theirs = unwrap(
      config(`write_files: [{path: /b}]
users: [default, {name: ops}]
packages: [curl, nfs-common, [git, "1"]]
apt: {sources: {x: {}}}
package_update: true
runcmd: [first, [second]]
timezone: UTC
`),
    );
    expect(unwrap(mergeCloudConfig(ours, theirs))).toEqual({
      write_files: [{ path: '/a' }, { path: '/b' }],
      users: [{ name: 'ubuntu' }, 'default', { name: 'ops' }],
      packages: ['curl', 'nfs-common', ['git', '1']],
      apt: { http_proxy: 'http://p', sources: { x: {} } },
      package_update: true,
      timezone: 'UTC',
      runcmd: ['first', ['second'], ['ours']],
    });
    expect(unwrap(mergeCloudConfig({}, {}))).toEqual({});
    expect(unwrap(mergeCloudConfig(ours, { runcmd: null }))).toEqual(ours);
  });

  it.each([
    ['write_files: [{path: /a}]', "write_files contains '/a', which pvescaler sets"],
    ['write_files: [{path: /later}]', "write_files contains '/later', which pvescaler sets"],
    ['users: [{name: ubuntu}]', "users contains 'ubuntu', which pvescaler sets"],
    ['users: [ubuntu]', "users contains 'ubuntu', which pvescaler sets"],
    ['package_update: false', "sets 'package_update', which pvescaler sets to another value"],
    ['apt: {http_proxy: secret}', "sets 'apt.http_proxy', which pvescaler sets to another value"],
    ['packages: curl', "sets 'packages', which pvescaler sets to another value"],
    ['apt: []', "sets 'apt', which pvescaler sets to another value"],
  ])('refuses %s', (text, problem) => {
    const merged = mergeCloudConfig(ours, unwrap(config(text)), ['/later']);
    expect(merged).toEqual({
      ok: false,
      problem: `the cloud-config${problem.startsWith('sets') ? ' ' : "'s "}${problem}`,
    });
  });
});
