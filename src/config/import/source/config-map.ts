// SPDX-License-Identifier: Apache-2.0
// Settings inside a Kubernetes ConfigMap manifest, with their position, so that a message names the line
// of the manifest and not the line of the embedded text.

import type { SourcePosition } from '../result.ts';
import type { SourceTree } from './tree.ts';

export interface EmbeddedText {
  readonly name: string;
  readonly text: string;
  /** Maps a position in the text to a position in the manifest. */
  readonly place: (inner: SourcePosition) => SourcePosition;
}

/** The texts of all ConfigMaps in the documents of the file. */
export function findEmbeddedTexts(
  trees: readonly SourceTree[],
  manifest: string,
): readonly EmbeddedText[] {
  const lines = manifest.split(/\r?\n/);
  return trees.flatMap((tree) => {
    if (!isConfigMap(tree)) return [];
    const data = tree.kind === 'map' ? tree.entries.get('data') : undefined;
    if (data?.kind !== 'map') return [];
    return [...data.entries].flatMap(([name, value]) =>
      value.kind === 'scalar' && typeof value.value === 'string'
        ? [{ name, text: value.value, place: positionMapper(value.at, lines) }]
        : [],
    );
  });
}

export function isConfigMap(tree: SourceTree): boolean {
  if (tree.kind !== 'map') return false;
  const kind = tree.entries.get('kind');
  return kind?.kind === 'scalar' && kind.value === 'ConfigMap';
}

function positionMapper(
  key: SourcePosition | undefined,
  lines: readonly string[],
): (inner: SourcePosition) => SourcePosition {
  const at = key ?? { line: 1, column: 1 };
  // Only a literal block keeps its lines; for any other style only the position of the key is known.
  if (!/:\s*\|[-+\d]*\s*(?:#.*)?$/.test(lines[at.line - 1] ?? '')) return () => at;
  const first = lines.slice(at.line).find((line) => line.trim() !== '') ?? '';
  const indent = first.length - first.trimStart().length;
  return ({ line, column }) => ({ line: at.line + line, column: column + indent });
}
