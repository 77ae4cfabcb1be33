// SPDX-License-Identifier: Apache-2.0
// When an object is deleted at once, and when it is only marked as terminating.
import {
  formatTime,
  isTerminating,
  type JsonObject,
  numberField,
  type SimObject,
  specOf,
  statusOf,
  textField,
  textList,
} from './objects.ts';
import { DEFINITIONS, NAMESPACES, PODS, type Resource } from './resources.ts';

/** The body of a DELETE request. */
export type DeleteOptions = JsonObject;

/** Finalizers that the garbage collector handles. */
export const FOREGROUND_FINALIZER = 'foregroundDeletion';
export const ORPHAN_FINALIZER = 'orphan';
/** Keeps a CustomResourceDefinition until its objects are gone. */
export const CLEANUP_FINALIZER = 'customresourcecleanup.apiextensions.k8s.io';
const POLICY_FINALIZERS: Readonly<Record<string, string>> = {
  Foreground: FOREGROUND_FINALIZER,
  Orphan: ORPHAN_FINALIZER,
};

export interface TerminationMark {
  readonly deletionTimestamp: string;
  readonly graceSeconds: number;
  readonly finalizers?: readonly string[];
}

export function planDeletion(
  resource: Resource,
  object: SimObject,
  { options, now }: { readonly options: DeleteOptions; readonly now: number },
): 'at-once' | TerminationMark {
  const seconds = graceSecondsOf(resource, object, options);
  const finalizers = finalizersOf(resource, object, options);
  const isKept = resource === NAMESPACES && textList(specOf(object), 'finalizers').length > 0;
  if (seconds === 0 && finalizers.length === 0 && !isKept) return 'at-once';
  const earlier = object.metadata.deletionTimestamp;
  const requested = formatTime(now + seconds * 1_000);
  return {
    // A second request can only shorten the grace period.
    deletionTimestamp: earlier !== undefined && earlier < requested ? earlier : requested,
    graceSeconds: isTerminating(object)
      ? Math.min(seconds, numberField(object.metadata, 'deletionGracePeriodSeconds', seconds))
      : seconds,
    ...(finalizers.length > 0 && { finalizers }),
  };
}

/** Only a pod that its kubelet runs ends gracefully. */
function graceSecondsOf(resource: Resource, object: SimObject, options: DeleteOptions): number {
  const spec = specOf(object);
  if (resource !== PODS || textField(spec, 'nodeName') === '') return 0;
  if (['Succeeded', 'Failed'].includes(textField(statusOf(object), 'phase'))) return 0;
  const own = numberField(spec, 'terminationGracePeriodSeconds', 30);
  return Math.max(0, numberField(options, 'gracePeriodSeconds', own));
}

function finalizersOf(
  resource: Resource,
  object: SimObject,
  options: DeleteOptions,
): readonly string[] {
  const policy = POLICY_FINALIZERS[textField(options, 'propagationPolicy')];
  const added = [
    ...(policy === undefined ? [] : [policy]),
    ...(resource === DEFINITIONS ? [CLEANUP_FINALIZER] : []),
  ];
  return [...new Set([...textList(object.metadata, 'finalizers'), ...added])];
}
