// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { advanceUntilSettled } from '../../../ports/fakes/advance-until-settled.ts';
import { SeededRandom } from '../../../ports/fakes/seeded-random.ts';
import { VirtualClock } from '../../../ports/fakes/virtual-clock.ts';
import { createProxmoxSim } from '../sim.ts';
import { defaultCluster } from '../state/cluster-description.ts';

const UPID = /^"UPID:pve1:[0-9A-F]{8}:[0-9A-F]{8}:[0-9A-F]{8}:\w+:\d*:root@pam:"$/;

function hostShell() {
  const clock = new VirtualClock();
  const sim = createProxmoxSim({ cluster: defaultCluster(2), clock, random: new SeededRandom(1) });
  const run = (command: string, input = '', isConnected = () => true) =>
    advanceUntilSettled(clock, sim.shell('pve1').run({ command, input, isConnected }));
  return { clock, sim, run };
}

const CREATE =
  'pvesh create /nodes/pve1/qemu --vmid 100 --name a --scsi0 local-lvm:4 --output-format json';

describe('pvesh', () => {
  it('waits for the task, prints its log, and the UPID last', async () => {
    const { run } = hostShell();
    const { code, out, err } = await run(CREATE);
    const lines = out.trimEnd().split('\n');
    expect([code, err]).toEqual([0, '']);
    expect(lines.at(-1)).toMatch(UPID);
    expect(lines.length).toBeGreaterThan(1);
  });

  it('exits with 0 and prints the error and the UPID when the task failed', async () => {
    const { run } = hostShell();
    const { code, out, err } = await run(
      'pvesh create /nodes/pve1/qemu/999/status/start --output-format json',
    );
    expect(code).toBe(0);
    expect(err).toContain("Configuration file 'nodes/pve1/qemu-server/999.conf' does not exist");
    expect(out.trimEnd().split('\n').at(-1)).toMatch(UPID);
  });

  it('prints the change and no result for a configuration', async () => {
    const { run } = hostShell();
    await run(CREATE);
    const { code, out } = await run(
      `pvesh set /nodes/pve1/qemu/100/config --description 'a b' --output-format json`,
    );
    expect([code, out]).toEqual([0, 'update VM 100: -description a b\n']);
  });

  it.each([
    ['pvesh get /nodes/pve1/nosuch', 1, "No 'get' handler defined for '/nodes/pve1/nosuch'"],
    ['pvesh get /nodes/pve1/qemu/999/config --output-format json', 2, "999.conf' does not exist"],
    ['pvesh create /nodes/pve1/qemu --vmid 1', 255, '400 Parameter verification failed.\nvmid: '],
    ['pvesh get /version --bogus 1', 255, 'Unknown option: bogus\n400 unable to parse option'],
    ['pvesh set /nodes/pve1/qemu/100/config --onboot maybe', 255, '400 unable to parse boolean'],
    ['pvesh get /nodes/none/qemu', 11, "hostname lookup 'none' failed"],
    ['nosuch', 127, 'sh: 1: nosuch: not found'],
  ])('%s exits with %i', async (command, code, text) => {
    const { run } = hostShell();
    const result = await run(command);
    expect(result.code).toBe(code);
    expect(result.err).toContain(text);
    expect(result.out.replace(/^update VM .*\n/, '')).toBe('');
  });

  it('accepts abbreviated names, attached values and words for booleans', async () => {
    const { run } = hostShell();
    await run(CREATE);
    await run('pvesh set nodes/localhost/qemu/100/config/ --onb yes -name=b');
    const { out } = await run('pvesh get /nodes/pve1/qemu/100/config --output-format json');
    expect(JSON.parse(out)).toMatchObject({ onboot: 1, name: 'b' });
  });

  it('garbles the output of a task on another host', async () => {
    const { run } = hostShell();
    const { code, out } = await run(CREATE.replace('/pve1/', '/pve2/'));
    expect(code).toBe(0);
    expect(out).toMatch(/^".+\\"UPID:pve2:[^"]*\\""\n$/);
  });

  it('aborts the task at its next line when the connection is gone', async () => {
    const { run } = hostShell();
    await run(CREATE.replace('local-lvm:4', 'local-lvm:64'));
    const { code } = await run(
      'pvesh create /nodes/pve1/qemu/100/clone --newid 101',
      '',
      () => false,
    );
    expect(code).toBe(255);
    const { out } = await run('pvesh get /nodes/pve1/tasks --output-format json');
    expect(JSON.parse(out)).toMatchObject([{ type: 'qmclone', status: 'broken pipe' }, {}]);
    expect((await run('qm config 101')).code).toBe(2);
  });
});

describe('qm', () => {
  it('exits with 255 when the task failed, and with 0 for resize and template', async () => {
    const { run } = hostShell();
    await run(CREATE);
    expect((await run('qm start 100')).code).toBe(0);
    const again = await run('qm start 100');
    expect([again.code, again.err]).toEqual([255, 'VM 100 already running\n']);
    const resized = await run('qm resize 100 scsi9 +1G');
    expect([resized.code, resized.err]).toEqual([0, "disk 'scsi9' does not exist\n"]);
    expect((await run('qm destroy --purge 100')).err).toContain('400 not enough arguments');
  });

  it('prints lists, states and configurations as text, of its own host only', async () => {
    const { run } = hostShell();
    expect((await run('qm list')).out).toBe('');
    await run(CREATE);
    await run(CREATE.replace('/pve1/', '/pve2/').replace('100', '101'));
    expect((await run('qm list')).out).toMatch(/^ +VMID NAME .*\n +100 a +stopped .*\n$/);
    expect((await run('qm status 100')).out).toBe('status: stopped\n');
    expect((await run('qm config 100')).out).toContain('name: a\n');
    expect((await run('qm config 101')).code).toBe(2);
  });
});

describe('the shell', () => {
  it('runs background processes that survive their script', async () => {
    const { run, clock } = hostShell();
    const script = `{ sleep 5; echo late >/tmp/late; } >/dev/null 2>&1 &\npgrep -P 1 >/dev/null; echo "$!"\n`;
    const { out } = await run('exec sh -s', script);
    expect(out).toMatch(/^\d+\n$/);
    await clock.advance(10_000);
    expect((await run('cat /tmp/late')).out).toBe('late\n');
  });

  it('refuses connections while the host is down', async () => {
    const { run, sim } = hostShell();
    sim.externalChanges.hostDown('pve1');
    await expect(run('uname -n')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });
});
