// SPDX-License-Identifier: Apache-2.0
// Finds the settings in a file that was handed in: the file itself, or a text inside a ConfigMap; and makes
// sure that they are those of the system that was named.

import {
  type Detected,
  detectOwner,
  looksLikeSettings,
  missingTopKeys,
  wrongFileMessage,
} from './detect.ts';
import type { ImportRequest, Position, System } from './result.ts';
import { type Enclosed, enclosedTexts } from './source/config-map.ts';
import type { Tree, Where } from './source/tree.ts';
import {
  readYaml,
  type TextProblem,
  type YamlTrees,
  type YamlVersion,
} from './source/yaml-tree.ts';

export type Opened =
  | { readonly kind: 'yaml'; readonly tree: Tree; readonly repeated: readonly Where[] }
  | {
      readonly kind: 'python';
      readonly text: string;
      readonly place: (inner: Position) => Position;
    }
  | { readonly kind: 'failed'; readonly problems: readonly TextProblem[] };

type YamlSystem = Exclude<System, 'proxmox-autoscaler'>;

const VERSIONS: Readonly<Record<YamlSystem, YamlVersion>> = {
  externalgrpc: '1.1',
  'vm-plan': '1.1',
  kubenodesmith: '1.2',
};

export function openSource({ from, text }: ImportRequest): Opened {
  if (!/^[ \t]*[^#\s]/m.test(text)) return failed('is empty');
  return from === 'proxmox-autoscaler' ? openPython(text) : openYaml(from, text);
}

function failed(message: string, at: Position = { line: 1, column: 1 }): Opened {
  return { kind: 'failed', problems: [{ ...at, message }] };
}

function openPython(text: string): Opened {
  const yaml = readYaml(text, '1.1');
  const enclosed = yaml.ok ? enclosedTexts(yaml.trees, text) : [];
  const settings = enclosed.find(({ name, text: inner }) => isSettings(name, inner));
  if (settings !== undefined) return { kind: 'python', text: settings.text, place: settings.place };
  const detected = firstOwner(yaml);
  if (detected !== undefined && looksLikeSettings(text) === undefined) {
    return failed(wrongFileMessage(detected.owner, 'proxmox-autoscaler'), detected.at);
  }
  return { kind: 'python', text, place: (inner) => inner };
}

function isSettings(name: string, text: string): boolean {
  return name === 'settings' || name === 'settings.py' || looksLikeSettings(text) !== undefined;
}

function firstOwner(yaml: YamlTrees): Detected | undefined {
  const trees = yaml.ok ? yaml.trees : [];
  return trees.map(detectOwner).find((detected) => detected !== undefined);
}

function openYaml(from: YamlSystem, text: string): Opened {
  const settings = looksLikeSettings(text);
  const yaml = readYaml(text, VERSIONS[from]);
  const isPython =
    settings !== undefined && !(yaml.ok && yaml.trees.some(({ kind }) => kind === 'map'));
  if (isPython) return failed(wrongFileMessage('proxmox-autoscaler', from), settings);
  if (!yaml.ok) return { kind: 'failed', problems: yaml.problems };
  const inner = enclosedTexts(yaml.trees, text);
  return inner.length > 0 ? openEnclosed(from, inner) : openTrees(from, yaml);
}

function openTrees(from: YamlSystem, yaml: Extract<YamlTrees, { ok: true }>): Opened {
  const tree = yaml.trees.find(({ kind }) => kind === 'map');
  if (tree === undefined) {
    return failed('is not a mapping of keys to values', yaml.trees[0]?.at);
  }
  const detected = detectOwner(tree);
  if (detected !== undefined && detected.owner !== from) {
    return failed(wrongFileMessage(detected.owner, from), detected.at);
  }
  const missing = missingTopKeys(tree, from);
  if (missing.length > 0)
    return failed(`has none of the keys of ${from}: ${missing.join(', ')}`, tree.at);
  return { kind: 'yaml', tree, repeated: yaml.repeated };
}

/** The first text of a ConfigMap that is the system's, otherwise what is wrong with the first one. */
function openEnclosed(from: YamlSystem, texts: readonly Enclosed[]): Opened {
  const opened = texts.map((inner) => ({ inner, result: openInner(from, inner) }));
  const own = opened.find(
    ({ result }) => result.kind === 'yaml' && detectOwner(result.tree)?.owner === from,
  );
  const [first] = opened;
  return (own ?? first)?.result ?? failed('is a ConfigMap without data');
}

function openInner(from: YamlSystem, { text, place }: Enclosed): Opened {
  const yaml = readYaml(text, VERSIONS[from]);
  if (looksLikeSettings(text) !== undefined) {
    return failed(wrongFileMessage('proxmox-autoscaler', from), place({ line: 1, column: 1 }));
  }
  if (!yaml.ok) {
    return {
      kind: 'failed',
      problems: yaml.problems.map((problem) => ({ ...problem, ...place(problem) })),
    };
  }
  const opened = openTrees(from, yaml);
  if (opened.kind === 'failed') {
    return {
      kind: 'failed',
      problems: opened.problems.map((problem) => ({ ...problem, ...place(problem) })),
    };
  }
  if (opened.kind !== 'yaml') return opened;
  const repeated = opened.repeated.map((where) => placed(where, place));
  return { ...opened, tree: placed(opened.tree, place), repeated };
}

/** The same, with the places of the manifest. */
function placed<T extends Where>(where: T, place: (inner: Position) => Position): T {
  const moved = where.at === undefined ? where : { ...where, at: place(where.at) };
  if (!isTree(moved)) return moved;
  if (moved.kind === 'list')
    return { ...moved, items: moved.items.map((item) => placed(item, place)) };
  if (moved.kind === 'scalar') return moved;
  const entries = [...moved.entries].map(([key, tree]) => [key, placed(tree, place)] as const);
  return { ...moved, entries: new Map(entries) };
}

function isTree<T extends Where>(where: T): where is T & Tree {
  return 'kind' in where;
}
