// SPDX-License-Identifier: Apache-2.0
// Events in the older form of `v1`, which kubectl reads. They are stored in the form of `events.k8s.io/v1`.
import {
  type JsonObject,
  numberField,
  objectField,
  type SimObject,
  textField,
} from '../storage/objects.ts';

export function toCoreEvent(event: SimObject): SimObject {
  const series = objectField(event, 'series');
  const time = textField(event, 'eventTime') || event.metadata.creationTimestamp;
  const last = textField(series, 'lastObservedTime') || textField(event, 'deprecatedLastTimestamp');
  return {
    kind: 'Event',
    apiVersion: 'v1',
    metadata: event.metadata,
    involvedObject: objectField(event, 'regarding'),
    reason: textField(event, 'reason'),
    message: textField(event, 'note'),
    source: { component: textField(event, 'reportingController') },
    firstTimestamp: wholeSeconds(textField(event, 'deprecatedFirstTimestamp') || time),
    lastTimestamp: wholeSeconds(last || time),
    count: numberField(series, 'count', numberField(event, 'deprecatedCount', 1)),
    type: textField(event, 'type'),
    eventTime: event['eventTime'] ?? null,
    reportingComponent: textField(event, 'reportingController'),
    reportingInstance: textField(event, 'reportingInstance'),
  };
}

export function fromCoreEvent(event: JsonObject): JsonObject {
  const source = objectField(event, 'source');
  const last = event['lastTimestamp'] ?? event['eventTime'] ?? null;
  return {
    metadata: objectField(event, 'metadata'),
    regarding: objectField(event, 'involvedObject'),
    reason: textField(event, 'reason'),
    note: textField(event, 'message'),
    type: textField(event, 'type'),
    eventTime: event['eventTime'] ?? last,
    reportingController: textField(event, 'reportingComponent') || textField(source, 'component'),
    reportingInstance: textField(event, 'reportingInstance') || textField(source, 'host'),
    deprecatedFirstTimestamp: event['firstTimestamp'] ?? last,
    deprecatedLastTimestamp: last,
    deprecatedCount: numberField(event, 'count', 1),
  };
}

function wholeSeconds(time: string): string {
  return time.replace(/\.\d+Z$/, 'Z');
}
