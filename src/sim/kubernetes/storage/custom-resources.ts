// SPDX-License-Identifier: Apache-2.0
// The resources of one API server: the built-in ones and those of its CustomResourceDefinitions.
import {
  isTerminating,
  type JsonObject,
  listField,
  objectField,
  type SimObject,
  specOf,
  textField,
  textList,
} from './objects.ts';
import {
  CORE_EVENTS,
  defineResource,
  EVENTS,
  type PrinterColumn,
  RESOURCES,
  type Resource,
  type ScalePaths,
} from './resources.ts';
import { compileSchema, hasRules } from './structural-schema.ts';

interface Definition {
  readonly object: SimObject;
  /**
   * How objects of all versions are stored. Changes of the definition change this value in place, because objects and
   * watches refer to it.
   */
  readonly stored: Resource;
  readonly served: readonly Resource[];
}

export class ResourceRegistry {
  readonly #definitions = new Map<string, Definition>();
  /** By `apiVersion/plural`: as requested, and as stored. */
  #byPath = new Map<string, readonly [requested: Resource, stored: Resource]>();
  #served: readonly Resource[] = [];

  constructor() {
    this.#index();
  }

  /** One per version. */
  get served(): readonly Resource[] {
    return this.#served;
  }

  /** One per kind of stored object. */
  get stored(): readonly Resource[] {
    return [...RESOURCES, ...this.#definitions.values().map(({ stored }) => stored)];
  }

  /** As requested. */
  find(apiVersion: string, plural: string): Resource | undefined {
    return this.#byPath.get(`${apiVersion}/${plural}`)?.[0];
  }

  findStored(apiVersion: string, plural: string): Resource | undefined {
    return this.#byPath.get(`${apiVersion}/${plural}`)?.[1];
  }

  /** The stored resource of an owner reference. */
  findByKind(apiVersion: string, kind: string): Resource | undefined {
    const found = this.#served.find((one) => one.apiVersion === apiVersion && one.kind === kind);
    return found && this.findStored(apiVersion, found.plural);
  }

  findDefined(definition: string): Resource | undefined {
    return this.#definitions.get(definition)?.stored;
  }

  /** Serves the resource of a CustomResourceDefinition, or what is new in it. */
  define(object: SimObject): void {
    const { name } = object.metadata;
    const before = this.#definitions.get(name);
    const isSame =
      before?.object['spec'] === object['spec'] &&
      before !== undefined &&
      isTerminating(before.object) === isTerminating(object);
    if (isSame) return;
    const versions = listField(specOf(object), 'versions');
    const storage = versions.find((version) => version['storage'] === true) ?? {};
    const next = describe(object, storage);
    this.#definitions.set(name, {
      object,
      stored: before === undefined ? next : Object.assign(before.stored, next),
      served: versions
        .filter((version) => version['served'] === true)
        .map((version) => describe(object, version)),
    });
    this.#index();
  }

  remove(definition: string): void {
    this.#definitions.delete(definition);
    this.#index();
  }

  #index(): void {
    const custom = [...this.#definitions.values()];
    this.#served = [...RESOURCES, ...custom.flatMap(({ served }) => served)];
    const pathOf = ({ apiVersion, plural }: Resource) => `${apiVersion}/${plural}`;
    this.#byPath = new Map(
      RESOURCES.map((one) => [pathOf(one), [one, one === CORE_EVENTS ? EVENTS : one]]),
    );
    for (const { served, stored } of custom) {
      for (const one of served) this.#byPath.set(pathOf(one), [one, stored]);
    }
  }
}

function describe(object: SimObject, version: JsonObject): Resource {
  const spec = specOf(object);
  const names = objectField(spec, 'names');
  const subresources = objectField(version, 'subresources');
  const scale =
    subresources['scale'] === undefined ? undefined : objectField(subresources, 'scale');
  const group = textField(spec, 'group');
  const schema = compileSchema(objectField(objectField(version, 'schema'), 'openAPIV3Schema'));
  return defineResource(`${group}/${textField(version, 'name')}`, textField(names, 'plural'), {
    kind: textField(names, 'kind'),
    isNamespaced: textField(spec, 'scope') === 'Namespaced',
    hasStatus: subresources['status'] !== undefined,
    hasGeneration: true,
    shortNames: textList(names, 'shortNames'),
    categories: textList(names, 'categories'),
    subresources: scale === undefined ? [] : ['scale'],
    custom: {
      definition: object.metadata.name,
      singular: textField(names, 'singular'),
      schema,
      hasRules: hasRules(schema),
      columns: listField(version, 'additionalPrinterColumns').map(readColumn),
      ...(scale !== undefined && { scale: readScalePaths(scale) }),
      isTerminating: isTerminating(object),
    },
  });
}

function readColumn(column: JsonObject): PrinterColumn {
  const jsonPath = textField(column, 'jsonPath');
  return {
    name: textField(column, 'name'),
    type: textField(column, 'type'),
    description:
      textField(column, 'description') ||
      `Custom resource definition column (in JSONPath format): ${jsonPath}`,
    jsonPath,
    priority: column['priority'] ?? 0,
  };
}

function readScalePaths(scale: JsonObject): ScalePaths {
  const split = (key: string) => textField(scale, key).split('.').filter(Boolean);
  const selector = split('labelSelectorPath');
  return {
    spec: split('specReplicasPath'),
    status: split('statusReplicasPath'),
    ...(selector.length > 0 && { selector }),
  };
}
