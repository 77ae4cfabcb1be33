// SPDX-License-Identifier: Apache-2.0
// Generates dependency-cruiser rules from the table of directions and runs them.
import { readdirSync } from 'node:fs';
import { cruise, type ICruiseResult } from 'dependency-cruiser';
import { COMPOSITION_ROOTS, LAYERS, type Layer, UI_CONTRACT } from './directions.ts';

export interface LayeringReport {
  readonly modules: number;
  /** One line per violation: the rule, the importing file and the imported file. */
  readonly violations: readonly string[];
}

interface Rule {
  name: string;
  comment: string;
  severity: 'error';
  from: Record<string, unknown>;
  to: Record<string, unknown>;
}

/** Tests and test helpers may use Node APIs and any package. */
const TESTS = '(\\.(test|contract)\\.ts$|/testing/)';

function folderPattern(layer: string): string {
  return `^src/${layer}/`;
}

/** Layers inside a layer (proxmox/wire-facts) have their own rules. */
function nestedLayers(layer: string): string[] {
  return Object.keys(LAYERS).filter((other) => other.startsWith(`${layer}/`));
}

function directionRule(layer: string, { imports }: Layer): Rule {
  // Tests inside a folder use the test data of the whole folder.
  const tests = layer.includes('/') ? [TESTS] : [];
  const excluded = [...nestedLayers(layer).map(folderPattern), ...tests];
  return {
    name: `directions: ${layer}`,
    comment: `src/${layer} may import ${imports.length > 0 ? imports.join(', ') : 'nothing of src'}`,
    severity: 'error',
    from: { path: folderPattern(layer), ...(excluded.length > 0 && { pathNot: excluded }) },
    to: {
      path: '^(src|ui|test|bench|scripts)/',
      pathNot: [layer, ...imports].map((allowed) => ownFilesPattern(allowed, imports)),
    },
  };
}

/** The files of a layer without the layers inside it, unless the importing layer lists them. */
function ownFilesPattern(layer: string, imports: readonly string[]): string {
  const closed = nestedLayers(layer).filter((inside) => !imports.includes(inside));
  const names = closed.map((inside) => inside.slice(layer.length + 1)).join('|');
  return names === '' ? folderPattern(layer) : `${folderPattern(layer)}(?!(${names})/)`;
}

function purityRules(layer: string, { packages = [] }: Layer): Rule[] {
  const from = { path: folderPattern(layer), pathNot: TESTS };
  return [
    {
      name: `pure: ${layer} uses no Node API`,
      comment: 'pure code receives time, randomness and bytes as arguments',
      severity: 'error',
      from,
      to: { dependencyTypes: ['core'] },
    },
    {
      name: `pure: ${layer} uses no package`,
      comment: `allowed here: ${packages.join(', ') || 'none'}`,
      severity: 'error',
      from,
      to: {
        path: 'node_modules',
        ...(packages.length > 0 && { pathNot: packages.map((name) => `node_modules/${name}/`) }),
      },
    },
  ];
}

function entryRule(layer: string): Rule {
  const inside = nestedLayers(layer).map(folderPattern);
  return {
    name: `entry: ${layer} is entered through index.ts`,
    comment: 'index.ts exports what other layers may use',
    severity: 'error',
    from: { path: '^(src|test|bench|scripts)/', pathNot: [folderPattern(layer)] },
    // Test helpers may be used by the tests of every layer.
    to: {
      path: folderPattern(layer),
      pathNot: [`${folderPattern(layer)}index\\.ts$`, '/testing/', UI_CONTRACT, ...inside],
    },
  };
}

const GENERAL_RULES: Rule[] = [
  {
    name: 'no cycles',
    comment: 'merge the two files, or move the shared part to a third',
    severity: 'error',
    from: {},
    to: { circular: true },
  },
  {
    name: 'composition roots are not imported',
    comment: 'they wire the adapters together; no other file may depend on them',
    severity: 'error',
    from: { path: '^(src|ui)/', pathNot: COMPOSITION_ROOTS.map((root) => `^${root}$`) },
    to: { path: COMPOSITION_ROOTS.map((root) => `^${root}$`) },
  },
  {
    name: 'ui imports only the contract',
    comment: `ui/ may import ${UI_CONTRACT} and nothing else of src/`,
    severity: 'error',
    from: { path: '^ui/' },
    to: { path: '^src/', pathNot: `^${UI_CONTRACT}$` },
  },
  {
    name: 'everything resolves',
    comment: 'an unresolved import would escape every other rule',
    severity: 'error',
    from: {},
    to: { couldNotResolve: true },
  },
];

function buildRules(): Rule[] {
  return [
    ...GENERAL_RULES,
    ...Object.entries(LAYERS).flatMap(([name, layer]) => [
      directionRule(name, layer),
      ...(layer.pure === true ? purityRules(name, layer) : []),
      ...(layer.open === undefined ? [entryRule(name)] : []),
    ]),
  ];
}

/** The rules only cover imports; this finds files of no layer even if they import nothing. */
function findFilesWithoutLayer(sources: readonly string[]): string[] {
  return sources
    .filter((path) => path.startsWith('src/') && !COMPOSITION_ROOTS.includes(path))
    .filter((path) => !Object.keys(LAYERS).some((layer) => path.startsWith(`src/${layer}/`)))
    .map(
      (path) =>
        `every file belongs to a layer: ${path} (add its folder to scripts/layering/directions.ts)`,
    );
}

export async function checkLayering(baseDir: string): Promise<LayeringReport> {
  const roots = ['src', 'ui', 'test', 'bench', 'scripts'].filter((name) =>
    readdirSync(baseDir).includes(name),
  );
  const result = await cruise(roots, {
    baseDir,
    ruleSet: { forbidden: buildRules() },
    validate: true,
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default'],
      extensions: ['.ts', '.js', '.json'],
    },
  });
  const { modules, summary } = result.output as ICruiseResult;
  const own = modules.filter((module) => /^(src|ui)\//.test(module.source));
  return {
    modules: own.length,
    violations: [
      ...findFilesWithoutLayer(own.map(({ source }) => source)),
      ...summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} imports ${to}`),
    ],
  };
}
