// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { mergeCloudConfig, parseCloudConfig } from './merge-cloud-config.ts';
import { value } from './testing/a-seed.ts';

const config = (text: string) => parseCloudConfig(`#cloud-config\n${text}`);

describe('parseCloudConfig', () => {
  it('reads YAML as cloud-init does', () => {
    expect(
      value(config('ssh_pwauth: no\nwrite_files: [{permissions: 0644}]\nat: 2026-01-01\n')),
    ).toEqual({
      ssh_pwauth: false,
      write_files: [{ permissions: 0o644 }],
      at: '2026-01-01',
    });
    expect(value(config(''))).toEqual({});
    expect(value(parseCloudConfig('#cloud-config'))).toEqual({});
    expect(value(parseCloudConfig('#cloud-config \r\na: 1\r\n'))).toEqual({ a: 1 });
  });

  it.each([
    ['#!/bin/sh\n', "does not start with a line '#cloud-config'"],
    ['## template: jinja\n#cloud-config\n', "does not start with a line '#cloud-config'"],
    ['#cloud-config-archive\n', "does not start with a line '#cloud-config'"],
    ['#cloud-config\n- a\n', 'is not a mapping'],
    ['#cloud-config\na: [\n', 'is not YAML'],
    ['#cloud-config\na: 1\na: 2\n', 'is not YAML'],
    ['#cloud-config\na: !!binary aGk=\n', 'is not YAML'],
    ['#cloud-config\na: \ud800\n', 'has broken characters'],
    ['#cloud-config\nhostname: x\n', "sets 'hostname': the host name is the machine's name"],
    ['#cloud-config\ncloud_final_modules: []\n', "sets 'cloud_final_modules'"],
    ['#cloud-config\nruncmd: reboot\n', 'runcmd is not a list'],
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

  it('adds lists up and merges maps; our command is last', () => {
    const theirs = value(
      config(`write_files: [{path: /b}]
users: [default, {name: ops}]
packages: [curl, nfs-common, [git, "1"]]
apt: {sources: {x: {}}}
package_update: true
runcmd: [first, [second]]
timezone: UTC
`),
    );
    expect(value(mergeCloudConfig(ours, theirs))).toEqual({
      write_files: [{ path: '/a' }, { path: '/b' }],
      users: [{ name: 'ubuntu' }, 'default', { name: 'ops' }],
      packages: ['curl', 'nfs-common', ['git', '1']],
      apt: { http_proxy: 'http://p', sources: { x: {} } },
      package_update: true,
      timezone: 'UTC',
      runcmd: ['first', ['second'], ['ours']],
    });
    expect(value(mergeCloudConfig({}, {}))).toEqual({});
    expect(value(mergeCloudConfig(ours, { runcmd: null }))).toEqual(ours);
  });

  it.each([
    ['write_files: [{path: /a}]', "write_files has '/a', which is set already"],
    ['write_files: [{path: /later}]', "write_files has '/later', which is set already"],
    ['users: [{name: ubuntu}]', "users has 'ubuntu', which is set already"],
    ['users: [ubuntu]', "users has 'ubuntu', which is set already"],
    ['package_update: false', "sets 'package_update', which is set already"],
    ['apt: {http_proxy: secret}', "sets 'apt.http_proxy', which is set already"],
    ['packages: curl', "sets 'packages', which is set already"],
    ['apt: []', "sets 'apt', which is set already"],
  ])('refuses %s', (text, problem) => {
    const merged = mergeCloudConfig(ours, value(config(text)), ['/later']);
    expect(merged).toEqual({
      ok: false,
      problem: `the cloud-config${problem.startsWith('sets') ? ' ' : "'s "}${problem}`,
    });
  });
});
