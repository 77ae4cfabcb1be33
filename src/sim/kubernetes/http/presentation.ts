// SPDX-License-Identifier: Apache-2.0
// How objects look in responses: as they are, as rows of a Table, as metadata only, or as events of `v1`.
import type { JsonObject, SimObject } from '../storage/objects.ts';
import { CORE_EVENTS, type Resource } from '../storage/resources.ts';
import { toCoreEvent } from './core-events.ts';
import { buildTable, isTableRequested, toPartialMetadata } from './table.ts';

export interface Presentation {
  /** The form that selectors read. */
  readonly convert: (object: SimObject) => SimObject;
  readonly one: (object: SimObject) => JsonObject;
  readonly list: (objects: readonly SimObject[], metadata: JsonObject) => JsonObject;
}

interface PresentationOptions {
  /** As requested; the stored resource may differ. */
  readonly resource: Resource;
  readonly accept: string;
  readonly query: URLSearchParams;
  readonly now: number;
}

export function choosePresentation(options: PresentationOptions): Presentation {
  const { resource, accept } = options;
  const convert = converterOf(resource);
  if (isTableRequested(accept)) {
    const table = { ...options, includeObject: options.query.get('includeObject') };
    return {
      convert,
      one: (object) => buildTable([convert(object)], {}, table),
      list: (objects, metadata) => buildTable(objects.map(convert), metadata, table),
    };
  }
  const { apiVersion, kind } = resource;
  if (accept.includes('as=PartialObjectMetadata')) {
    const list = { kind: 'PartialObjectMetadataList', apiVersion: 'meta.k8s.io/v1' };
    return {
      convert,
      one: toPartialMetadata,
      list: (objects, metadata) => ({ ...list, metadata, items: objects.map(toPartialMetadata) }),
    };
  }
  return {
    convert,
    one: convert,
    list: (objects, metadata) => ({
      kind: `${kind}List`,
      apiVersion,
      metadata,
      items: objects.map(convert),
    }),
  };
}

function converterOf(resource: Resource): (object: SimObject) => SimObject {
  if (resource === CORE_EVENTS) return toCoreEvent;
  const { custom, apiVersion } = resource;
  if (custom === undefined) return (object) => object;
  // Versions differ in their name only, as with the conversion strategy None.
  return (object) => (object.apiVersion === apiVersion ? object : { ...object, apiVersion });
}
