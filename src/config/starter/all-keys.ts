// SPDX-License-Identifier: Apache-2.0
// Renders every key of the schema as comment lines: its description, and the key with its default.
import { formatType } from '../reference/rows.ts';
import { expandForms, type SchemaNode, schemaTree } from '../schema/tree.ts';

const WIDTH = 110;

export function renderAllKeysAsComments(): string {
  const lines = Object.entries(schemaTree().properties ?? {}).flatMap(([key, node]) => [
    '',
    ...keyLines(key, node, ''),
  ]);
  return [
    '# ---------------------------------------------------------------------------------------------',
    '# All keys with their defaults. Copy the keys that you need to the config above.',
    ...lines.map((line) => (line === '' ? '#' : `# ${line}`)),
    '',
  ].join('\n');
}

function keyLines(key: string, node: SchemaNode, indent: string): readonly string[] {
  const meaning = wrap(`# ${node.description ?? ''}`, indent);
  const inner = childLines(node, `${indent}  `);
  return inner.length === 0
    ? [...meaning, `${indent}${key}: ${valueText(node)}`]
    : [...meaning, `${indent}${key}:`, ...inner];
}

function childLines(node: SchemaNode, indent: string): readonly string[] {
  if (node.items?.properties !== undefined) {
    const item = propertyLines(node.items, indent);
    // The dash goes to the first key, after the comment lines.
    const first = item.findIndex((line) => !line.trimStart().startsWith('#'));
    return item.map((line, index) =>
      index === first ? `${indent.slice(2)}- ${line.trimStart()}` : line,
    );
  }
  if (typeof node.additionalProperties === 'object') {
    const entry = propertyLines(node.additionalProperties, `${indent}  `);
    return entry.length === 0 ? [] : [`${indent}<name>:`, ...entry];
  }
  return propertyLines(node, indent);
}

/** Of several forms, uses the first mapping. */
function propertyLines(node: SchemaNode, indent: string): readonly string[] {
  if (node.anyOf !== undefined && node.default !== undefined) return [];
  const form = expandForms(node).find(({ properties }) => properties !== undefined);
  return Object.entries(form?.properties ?? {}).flatMap(([key, child]) =>
    keyLines(key, child, indent),
  );
}

function valueText(node: SchemaNode): string {
  const { default: value } = node;
  if (value === undefined) return `<${formatType(node)}>`;
  return typeof value === 'string' && /^[\w./-]+$/.test(value) ? value : JSON.stringify(value);
}

function wrap(text: string, indent: string): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && `${indent}${line} ${word}`.length > WIDTH) {
      lines.push(`${indent}${line}`);
      line = `# ${word}`;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, `${indent}${line}`];
}
