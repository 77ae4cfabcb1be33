// SPDX-License-Identifier: Apache-2.0
// Node affinity: terms of which one must match, each a list of conditions on labels and on the node's name.

import type { Labels } from './labels.ts';
import { accepted, type Parsed, refused } from './parsed.ts';
import {
  meets,
  parseRequirement,
  type Requirement,
  type RequirementSource,
} from './requirement.ts';

/** What of a node a selector looks at. */
export interface SelectableNode {
  readonly name: string;
  readonly labels: Labels;
}

/** A NodeSelectorTerm as it comes from the Kubernetes API. */
export interface NodeSelectorTermSource {
  readonly matchExpressions?: readonly RequirementSource[] | null;
  readonly matchFields?: readonly RequirementSource[] | null;
}

interface FieldRequirement {
  readonly field: string;
  readonly isEqual: boolean;
  readonly value: string;
}

export interface NodeSelectorTerm {
  readonly requirements: readonly Requirement[];
  readonly fields: readonly FieldRequirement[];
}

export interface NodeSelector {
  readonly terms: readonly NodeSelectorTerm[];
  /** Of terms that are malformed. As in the scheduler such a term matches no node; the others still count. */
  readonly problems: readonly string[];
}

export function readNodeSelector(sources: readonly NodeSelectorTermSource[]): NodeSelector {
  const terms = sources.map(parseNodeSelectorTerm);
  return {
    terms: terms.flatMap((term) => (term.ok ? [term.value] : [])),
    problems: terms.flatMap((term) => (term.ok ? [] : [term.problem])),
  };
}

/** Selects one node by its name. */
export function onlyNode(name: string): NodeSelector {
  const field = { field: 'metadata.name', isEqual: true, value: name };
  return { terms: [{ requirements: [], fields: [field] }], problems: [] };
}

export function parseNodeSelectorTerm(source: NodeSelectorTermSource): Parsed<NodeSelectorTerm> {
  const requirements = parseEach(source.matchExpressions ?? [], parseRequirement);
  if (!requirements.ok) return requirements;
  const fields = parseEach(source.matchFields ?? [], parseFieldRequirement);
  if (!fields.ok) return fields;
  return accepted({ requirements: requirements.value, fields: fields.value });
}

function parseEach<T>(
  sources: readonly RequirementSource[],
  parse: (source: RequirementSource) => Parsed<T>,
): Parsed<readonly T[]> {
  const values: T[] = [];
  for (const source of sources) {
    const parsed = parse(source);
    if (!parsed.ok) return parsed;
    values.push(parsed.value);
  }
  return accepted(values);
}

function parseFieldRequirement(source: RequirementSource): Parsed<FieldRequirement> {
  const { key, operator, values } = source;
  if (operator !== 'In' && operator !== 'NotIn') {
    return refused(`field '${key}' has operator '${operator}'; fields take In or NotIn`);
  }
  const [value, ...more] = values ?? [];
  if (value === undefined || more.length > 0)
    return refused(`field '${key}' needs exactly one value`);
  return accepted({ field: key, isEqual: operator === 'In', value });
}

export function matchesNode(selector: NodeSelector, node: SelectableNode): boolean {
  return selector.terms.some((term) => matchesTerm(term, node));
}

/** All conditions of the term hold; a term without conditions matches no node. */
export function matchesTerm(term: NodeSelectorTerm, node: SelectableNode): boolean {
  if (term.requirements.length + term.fields.length === 0) return false;
  return (
    term.requirements.every((requirement) => meets(requirement, node.labels)) &&
    term.fields.every((field) => meetsField(field, node))
  );
}

// The name is the only field there is; a node that has none yet is not judged by fields.
function meetsField(
  { field, isEqual, value }: FieldRequirement,
  { name }: SelectableNode,
): boolean {
  if (name === '') return true;
  const actual = field === 'metadata.name' ? name : '';
  return (actual === value) === isEqual;
}
