// SPDX-License-Identifier: Apache-2.0
// Whether the API server has the definition of ProxmoxPool that this release expects. The rights are in kubernetes.ts.
import { type Config, poolDefinition } from '../config/index.ts';
import type { ClusterInspector } from '../ports/inspection.ts';
import { type Check, failure, ok } from './check.ts';
import { describeOutdated } from './definitions.ts';
import { GROUP_VERSION, KUBERNETES_GROUP } from './kubernetes.ts';

const INSTALL = `Install the definition of this release:
kubectl apply -f deploy/crds/proxmoxpools.yaml`;

export function poolObjectsCheck(inspector: ClusterInspector, { cluster }: Config): Check {
  return {
    name: 'pool-objects',
    group: KUBERNETES_GROUP,
    run: async (signal) => {
      if (!cluster.poolObjects) return ok('pools are only in the config file');
      const { kind } = poolDefinition().spec.names;
      const served = await inspector.schema(GROUP_VERSION, kind, { signal });
      if (served === undefined)
        return failure(`the API server does not know ${kind} of ${GROUP_VERSION}`, INSTALL);
      const expected = poolDefinition().spec.versions[0]?.schema.openAPIV3Schema;
      const outdated = describeOutdated(kind, expected, served);
      if (outdated !== undefined) return failure(outdated, INSTALL);
      return ok(`${kind} objects in namespace ${cluster.namespace}`);
    },
  };
}
