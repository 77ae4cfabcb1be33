// SPDX-License-Identifier: Apache-2.0
// Node affinity: a list of terms, one of which must match. Each term is a list of conditions on labels and on
// the node's name.

import type { Labels } from './labels.ts';
import { accepted, type Parsed, refused } from './parsed.ts';
import {
  meetsRequirement,
  parseRequirement,
  type Requirement,
  type RequirementSource,
} from './requirement.ts';

/** The part of a node that selectors read. */
export interface SelectableNode {
  readonly name: string;
  readonly labels: Labels;
}

/** A NodeSelectorTerm object of the Kubernetes API. */
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
  /**
   * Problems of malformed terms. As in the scheduler, a malformed term matches no node and the other terms
   * still count.
   */
  readonly problems: readonly string[];
}

export function readNodeSelector(sources: readonly NodeSelectorTermSource[]): NodeSelector {
  const terms = sources.map(parseNodeSelectorTerm);
  return {
    terms: terms.flatMap((term) => (term.ok ? [term.value] : [])),
    problems: terms.flatMap((term) => (term.ok ? [] : [term.problem])),
  };
}

export function selectNodeByName(name: string): NodeSelector {
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
    return refused(`field '${key}' has operator '${operator}'; fields accept In or NotIn`);
  }
  const [value, ...more] = values ?? [];
  if (value === undefined || more.length > 0)
    return refused(`field '${key}' needs exactly one value`);
  return accepted({ field: key, isEqual: operator === 'In', value });
}

export function matchesNode(selector: NodeSelector, node: SelectableNode): boolean {
  return selector.terms.some((term) => matchesNodeTerm(term, node));
}

/** Whether all conditions of the term hold. As in the scheduler, a term without conditions matches no node. */
export function matchesNodeTerm(term: NodeSelectorTerm, node: SelectableNode): boolean {
  if (term.requirements.length + term.fields.length === 0) return false;
  return (
    term.requirements.every((requirement) => meetsRequirement(requirement, node.labels)) &&
    term.fields.every((field) => meetsField(field, node))
  );
}

// The name is the only supported field. As in the scheduler, field conditions are skipped for a node without a
// name.
function meetsField(
  { field, isEqual, value }: FieldRequirement,
  { name }: SelectableNode,
): boolean {
  if (name === '') return true;
  const actual = field === 'metadata.name' ? name : '';
  return (actual === value) === isEqual;
}
