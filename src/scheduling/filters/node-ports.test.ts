// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import type { PortSource } from '../../model/host-port.ts';
import type { PodSpecSource } from '../../model/pod-source.ts';
import { checkFit } from '../index.ts';
import { aCluster, aPod } from '../testing/builders.ts';

function collides(wanted: PodSpecSource, taken: PodSpecSource): boolean {
  const snapshot = aCluster({
    pods: [
      { name: 'other', on: 'node-1' },
      { on: 'node-1', spec: { nodeName: 'node-1', ...taken } },
    ],
  });
  return !checkFit(snapshot, aPod({ name: 'new', spec: wanted }), 'node-1').fits;
}

function ports(...all: PortSource[]): PodSpecSource {
  return { containers: [{ ports: all }] };
}

describe('NodePorts', () => {
  test('returns the port in use', () => {
    const snapshot = aCluster({
      pods: [{ spec: { nodeName: 'node-1', ...ports({ hostPort: 80 }) } }],
    });
    const pod = aPod({
      name: 'new',
      spec: ports({ hostPort: 443 }, { hostPort: 80, hostIP: '10.0.0.1' }),
    });
    expect(checkFit(snapshot, pod, 'node-1')).toEqual({
      fits: false,
      reasons: [{ filter: 'NodePorts', port: { ip: '10.0.0.1', protocol: 'TCP', port: 80 } }],
    });
  });

  test.each<[PortSource, PortSource, boolean]>([
    [{ hostPort: 80 }, { hostPort: 80 }, true],
    [{ hostPort: 80 }, { hostPort: 81 }, false],
    [{ hostPort: 80 }, { hostPort: 80, protocol: 'TCP' }, true],
    [{ hostPort: 80 }, { hostPort: 80, protocol: 'UDP' }, false],
    [{ hostPort: 80, hostIP: '10.0.0.1' }, { hostPort: 80, hostIP: '10.0.0.2' }, false],
    [{ hostPort: 80, hostIP: '10.0.0.1' }, { hostPort: 80, hostIP: '10.0.0.1' }, true],
    [{ hostPort: 80, hostIP: '10.0.0.1' }, { hostPort: 80 }, true],
    [{ hostPort: 80, hostIP: '0.0.0.0' }, { hostPort: 80, hostIP: '10.0.0.1' }, true],
    [{ hostPort: 80, hostIP: '' }, { hostPort: 80, hostIP: '::1' }, true],
    [{ hostPort: 80, hostIP: '::' }, { hostPort: 80, hostIP: '10.0.0.1' }, false],
    [{ hostPort: 80, hostIP: '::' }, { hostPort: 80, hostIP: '0.0.0.0' }, true],
    [{ hostPort: 0 }, { hostPort: 0 }, false],
    [{}, {}, false],
  ])('for %j and %j in use returns %s', (wanted, taken, expected) => {
    expect(collides(ports(wanted), ports(taken))).toBe(expected);
  });

  test('compares every port of a placed pod', () => {
    const taken = ports({ hostPort: 80 }, { hostPort: 443 });
    expect(collides(ports({ hostPort: 443 }), taken)).toBe(true);
    expect(collides(ports({ hostPort: 8443 }), taken)).toBe(false);
  });

  test('counts ports of sidecars, but not of other init containers', () => {
    const port = [{ hostPort: 80 }];
    const init = { initContainers: [{ ports: port }] };
    const sidecar = { initContainers: [{ ports: port, restartPolicy: 'Always' }] };
    expect(collides(ports({ hostPort: 80 }), sidecar)).toBe(true);
    expect(collides(ports({ hostPort: 80 }), init)).toBe(false);
    expect(collides(sidecar, ports({ hostPort: 80 }))).toBe(true);
    expect(collides(init, ports({ hostPort: 80 }))).toBe(false);
  });
});
