// SPDX-License-Identifier: Apache-2.0
import { openKubernetesStore } from '../../src/kubernetes/index.ts';
import { MemoryStore } from '../../src/ports/fakes/memory-store.ts';
import type { Store } from '../../src/ports/store.ts';
import { systemClock, systemRandom } from '../../src/system/index.ts';
import { openClusterTransport } from '../../test/kubernetes/cluster-bench.ts';

export const NAMESPACE = 'bench';

export function openBenchStore(kubeconfig: string, namespace = NAMESPACE): Promise<Store> {
  return openKubernetesStore({
    source: { kind: 'kubeconfig', path: kubeconfig },
    openTransport: openClusterTransport,
    runProgram: () => Promise.reject(new Error('no plugin is expected')),
    namespace,
    local: new MemoryStore({ clock: systemClock }),
    clock: systemClock,
    random: systemRandom,
  });
}
