// SPDX-License-Identifier: Apache-2.0
import type { Pod } from '../../../model/pod.ts';
import type { ControllerContext } from '../controllers/controller.ts';
import { type SimObject, specOf, textField } from '../storage/objects.ts';
import { STORAGE_CLASSES } from '../storage/resources.ts';

export function claimNames(pod: Pod): readonly string[] {
  return pod.volumes.flatMap((volume) => (volume.kind === 'disk' ? [] : volume.claimName));
}

export function waitsForConsumer(cluster: ControllerContext, claim: SimObject): boolean {
  const storageClass = cluster.find(
    STORAGE_CLASSES,
    '',
    textField(specOf(claim), 'storageClassName'),
  );
  return storageClass?.['volumeBindingMode'] === 'WaitForFirstConsumer';
}
