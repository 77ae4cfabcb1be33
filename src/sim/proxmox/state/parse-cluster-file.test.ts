// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../../../ports/fakes/seeded-random.ts';
import { VirtualClock } from '../../../ports/fakes/virtual-clock.ts';
import { createProxmoxSim } from '../sim.ts';
import { parseClusterDescription } from './parse-cluster-file.ts';

const SMALL = `hosts:
  - { name: pve1, cpus: 4, memory: 8GiB }
storages:
  - { name: local, type: dir, content: [iso], size: 1TiB }
`;

function problems(text: string): readonly string[] {
  const parsed = parseClusterDescription(text, 'site.yaml');
  return parsed.ok ? [] : parsed.problems;
}

describe('parseClusterDescription', () => {
  it('parses the example cluster file', async () => {
    const text = readFileSync(
      new URL('../../../../examples/sim/homelab.yaml', import.meta.url),
      'utf8',
    );
    const parsed = parseClusterDescription(text);
    expect(parsed).toMatchObject({ ok: true });
    if (!parsed.ok) return;
    const sim = createProxmoxSim({
      cluster: parsed.cluster,
      clock: new VirtualClock(),
      random: new SeededRandom(1),
    });
    const { vms, volumes } = sim.inspect();
    expect(vms.map(({ id, running }) => [id, running])).toEqual([
      [110, true],
      [9000, false],
      [130, false],
      [131, false],
    ]);
    expect(vms[2]?.config).toMatchObject({
      protection: '1',
      scsi0: 'attic:130/vm-130-disk-0.qcow2,size=8G',
    });
    expect(vms[3]?.config).toMatchObject({ lock: 'clone' });
    expect(vms[1]?.config).toMatchObject({
      template: '1',
      scsi0: 'fast:base-9000-disk-0,size=16G',
    });
    expect(
      volumes.filter(({ id }) => id === 'local:iso/debian-13.iso').map(({ host }) => host),
    ).toEqual(['pve1']);
    const authorization = 'PVEAPIToken=scaler@pve!k8s=00000000-0000-4000-8000-000000000001';
    const response = await sim.handle({
      method: 'GET',
      target: '/api2/json/cluster/resources',
      headers: { authorization },
    });
    expect(
      JSON.parse(response.body).data.find((row: { id: string }) => row.id === 'qemu/110'),
    ).toMatchObject({ name: 'nas' });
  });

  it('parses sizes', () => {
    const parsed = parseClusterDescription(SMALL);
    expect(parsed.ok && parsed.cluster.hosts[0]?.memory).toBe(8 * 2 ** 30);
  });

  it.each([
    [`${SMALL}colour: red\n`, "site.yaml:5:1: unknown key 'colour' (known: version,"],
    [SMALL.replace('cpus: 4', 'cpus: many'), 'site.yaml:2:25: expected a number'],
    [SMALL.replace('8GiB', 'lots'), 'site.yaml:2:36: expected a size such as 64GiB'],
    [SMALL.replace('type: dir', 'type: floppy'), 'site.yaml:4:26: expected one of dir, lvmthin'],
    [SMALL.replace('[iso]', 'iso'), 'site.yaml:4:40: expected a list'],
    [SMALL.replace(', cpus: 4', ''), "site.yaml:2:5: 'cpus' is missing"],
    ['hosts: {', 'site.yaml:1:9: '],
    ['- a', 'site.yaml:1:1: expected keys and values'],
    [
      `${SMALL}vms: [{ id: 100, host: nowhere }]\n`,
      "site.yaml:1:1: guest 100 is on host 'nowhere', which is not described",
    ],
    [
      `${SMALL}vms: [{ id: 100, host: pve1 }, { id: 100, host: pve1 }]\n`,
      'site.yaml:1:1: id 100 is used twice',
    ],
  ])('reports file, line and column of the error in %j', (text, problem) => {
    expect(problems(text)[0]).toContain(problem);
  });
});
