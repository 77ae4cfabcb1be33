// SPDX-License-Identifier: Apache-2.0
// Finds the settings in the source text: the file itself, or a text in a ConfigMap; and checks that they
// belong to the given system.

import type { SourceSystem } from '../source-systems.ts';
import {
  type Detection,
  detectSystem,
  explainWrongFile,
  findMissingTopKeys,
  findPythonSettings,
} from './detect-system.ts';
import type { ImportRequest, SourcePosition } from './result.ts';
import { type EmbeddedText, findEmbeddedTexts } from './source/config-map.ts';
import type { SourceRef, SourceTree } from './source/tree.ts';
import {
  readYaml,
  type SourceProblem,
  type YamlResult,
  type YamlVersion,
} from './source/yaml-tree.ts';

export type OpenedSource =
  | { readonly kind: 'yaml'; readonly tree: SourceTree; readonly repeated: readonly SourceRef[] }
  | {
      readonly kind: 'python';
      readonly text: string;
      readonly place: (inner: SourcePosition) => SourcePosition;
    }
  | { readonly kind: 'failed'; readonly problems: readonly SourceProblem[] };

type YamlSystem = Exclude<SourceSystem, 'proxmox-autoscaler'>;

const YAML_VERSIONS: Readonly<Record<YamlSystem, YamlVersion>> = {
  externalgrpc: '1.1',
  'vm-plan': '1.1',
  kubenodesmith: '1.2',
};

export function openSource({ from, text }: ImportRequest): OpenedSource {
  if (!/^[ \t]*[^#\s]/m.test(text)) return failedSource('is empty');
  return from === 'proxmox-autoscaler' ? openPython(text) : openYaml(from, text);
}

function failedSource(message: string, at: SourcePosition = { line: 1, column: 1 }): OpenedSource {
  return { kind: 'failed', problems: [{ ...at, message }] };
}

function openPython(text: string): OpenedSource {
  const yaml = readYaml(text, '1.1');
  const enclosed = yaml.ok ? findEmbeddedTexts(yaml.trees, text) : [];
  const settings = enclosed.find(({ name, text: inner }) => isSettingsModule(name, inner));
  if (settings !== undefined) return { kind: 'python', text: settings.text, place: settings.place };
  const detected = detectFirstSystem(yaml);
  if (detected !== undefined && findPythonSettings(text) === undefined) {
    return failedSource(explainWrongFile(detected.system, 'proxmox-autoscaler'), detected.at);
  }
  return { kind: 'python', text, place: (inner) => inner };
}

function isSettingsModule(name: string, text: string): boolean {
  return name === 'settings' || name === 'settings.py' || findPythonSettings(text) !== undefined;
}

function detectFirstSystem(yaml: YamlResult): Detection | undefined {
  const trees = yaml.ok ? yaml.trees : [];
  return trees.map(detectSystem).find((detected) => detected !== undefined);
}

function openYaml(from: YamlSystem, text: string): OpenedSource {
  const settings = findPythonSettings(text);
  const yaml = readYaml(text, YAML_VERSIONS[from]);
  const isPython =
    settings !== undefined && !(yaml.ok && yaml.trees.some(({ kind }) => kind === 'map'));
  if (isPython) return failedSource(explainWrongFile('proxmox-autoscaler', from), settings);
  if (!yaml.ok) return { kind: 'failed', problems: yaml.problems };
  const inner = findEmbeddedTexts(yaml.trees, text);
  return inner.length > 0 ? openEmbedded(from, inner) : openTrees(from, yaml);
}

function openTrees(from: YamlSystem, yaml: Extract<YamlResult, { ok: true }>): OpenedSource {
  const tree = yaml.trees.find(({ kind }) => kind === 'map');
  if (tree === undefined) {
    return failedSource('is not a mapping of keys to values', yaml.trees[0]?.at);
  }
  const detected = detectSystem(tree);
  if (detected !== undefined && detected.system !== from) {
    return failedSource(explainWrongFile(detected.system, from), detected.at);
  }
  const missing = findMissingTopKeys(tree, from);
  if (missing.length > 0)
    return failedSource(`contains no key of ${from}: ${missing.join(', ')}`, tree.at);
  return { kind: 'yaml', tree, repeated: yaml.repeated };
}

/** The first text of the ConfigMap that belongs to the system; otherwise the problems of the first text. */
function openEmbedded(from: YamlSystem, texts: readonly EmbeddedText[]): OpenedSource {
  const opened = texts.map((inner) => ({ inner, result: openEmbeddedText(from, inner) }));
  const own = opened.find(
    ({ result }) => result.kind === 'yaml' && detectSystem(result.tree)?.system === from,
  );
  const [first] = opened;
  return (own ?? first)?.result ?? failedSource('is a ConfigMap without usable data');
}

function openEmbeddedText(from: YamlSystem, { text, place }: EmbeddedText): OpenedSource {
  const yaml = readYaml(text, YAML_VERSIONS[from]);
  if (findPythonSettings(text) !== undefined) {
    return failedSource(
      explainWrongFile('proxmox-autoscaler', from),
      place({ line: 1, column: 1 }),
    );
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
  const repeated = opened.repeated.map((where) => moveToManifest(where, place));
  return { ...opened, tree: moveToManifest(opened.tree, place), repeated };
}

/** Returns the same tree with positions in the manifest. */
function moveToManifest<T extends SourceRef>(
  where: T,
  place: (inner: SourcePosition) => SourcePosition,
): T {
  const moved = where.at === undefined ? where : { ...where, at: place(where.at) };
  if (!isTree(moved)) return moved;
  if (moved.kind === 'list')
    return { ...moved, items: moved.items.map((item) => moveToManifest(item, place)) };
  if (moved.kind === 'scalar') return moved;
  const entries = [...moved.entries].map(
    ([key, tree]) => [key, moveToManifest(tree, place)] as const,
  );
  return { ...moved, entries: new Map(entries) };
}

function isTree<T extends SourceRef>(where: T): where is T & SourceTree {
  return 'kind' in where;
}
