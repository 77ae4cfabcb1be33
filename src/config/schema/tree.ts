// SPDX-License-Identifier: Apache-2.0
// The schema as plain data: JSON Schema with our own `x-` keywords. The reference page, suggestions and
// `config show` use it, so that none of them depends on the internals of the validation library.
import * as z from 'zod';
import type { ConfigPath } from '../config-path.ts';
import { PLANNED_KEYS } from '../planned-keys.ts';
import { RESTART_KEYS } from '../restart-keys.ts';
import type { SourceSystem } from '../source-systems.ts';
import { configSchema } from './index.ts';

export interface SchemaNode {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: SchemaNode | boolean;
  readonly items?: SchemaNode;
  readonly anyOf?: readonly SchemaNode[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly 'x-type'?: string;
  readonly 'x-forms'?: string;
  readonly 'x-note'?: string;
  readonly 'x-default'?: string;
  readonly 'x-replaces'?: Readonly<Partial<Record<SourceSystem, string | readonly string[]>>>;
}

let tree: SchemaNode | undefined;

/** Created at first use, because validating a correct file does not need it. */
export function schemaTree(): SchemaNode {
  tree ??= markRestart(
    markPlanned(
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the library's type has key words we never get
      z.toJSONSchema(configSchema, { io: 'input', unrepresentable: 'any' }) as SchemaNode,
    ),
  );
  return tree;
}

/** A key of which one value is supported says so in its own description. */
function markPlanned(root: SchemaNode): SchemaNode {
  for (const { prefix, supported } of PLANNED_KEYS) {
    if (supported !== undefined) continue;
    for (const node of nodesBelow(root, prefix))
      node.description = `Not in this release. ${node.description ?? ''}`;
  }
  return root;
}

function markRestart(root: SchemaNode): SchemaNode {
  for (const prefix of RESTART_KEYS) {
    for (const node of nodesBelow(root, prefix))
      node.description = `${node.description ?? ''} A change needs a restart.`.trim();
  }
  return root;
}

function nodesBelow(
  root: SchemaNode,
  prefix: readonly string[],
): readonly { description?: string }[] {
  let nodes: readonly SchemaNode[] = [root];
  for (const step of prefix) {
    nodes = nodes
      .flatMap(expandForms)
      .flatMap((node) => findChild(node, step === '*' && node.items !== undefined ? 0 : step));
  }
  return nodes;
}

/** Every schema node at this path; several when the value has several forms. */
export function findNodes(path: ConfigPath): readonly SchemaNode[] {
  let nodes: readonly SchemaNode[] = [schemaTree()];
  for (const step of path) {
    nodes = nodes.flatMap(expandForms).flatMap((node) => findChild(node, step));
  }
  return nodes;
}

/** Description of the forms of a value that has several. */
export function describeForms(path: ConfigPath): string | undefined {
  return findNodes(path).find((node) => node['x-forms'] !== undefined)?.['x-forms'];
}

/** The keys that are allowed in the mapping at this path, in the order of the schema. */
export function findKeys(path: ConfigPath): readonly string[] {
  const keys = findNodes(path)
    .flatMap(expandForms)
    .flatMap(({ properties }) => Object.keys(properties ?? {}));
  return [...new Set(keys)];
}

/** The node and all its alternative forms. */
export function expandForms(node: SchemaNode): readonly SchemaNode[] {
  return [node, ...(node.anyOf ?? []).flatMap(expandForms)];
}

function findChild(node: SchemaNode, step: string | number): readonly SchemaNode[] {
  if (typeof step === 'number') return node.items === undefined ? [] : [node.items];
  const { properties, additionalProperties } = node;
  const named =
    properties !== undefined && Object.hasOwn(properties, step) ? properties[step] : undefined;
  if (named !== undefined) return [named];
  return typeof additionalProperties === 'object' ? [additionalProperties] : [];
}
