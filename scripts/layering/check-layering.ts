// SPDX-License-Identifier: Apache-2.0
// Turns the table of directions into dependency-cruiser rules and runs them.
import { readdirSync } from 'node:fs';
import { cruise, type ICruiseResult } from 'dependency-cruiser';
import { COMPOSITION_ROOTS, ROOMS, type Room, UI_CONTRACT } from './directions.ts';

export interface LayeringReport {
  readonly modules: number;
  /** One line per broken rule: who imports what, and which rule forbids it. */
  readonly violations: readonly string[];
}

interface Rule {
  name: string;
  comment: string;
  severity: 'error';
  from: Record<string, unknown>;
  to: Record<string, unknown>;
}

/** Tests and what helps them may use what they like. */
const TESTS = '(\\.(test|contract)\\.ts$|/testing/)';

function folder(room: string): string {
  return `^src/${room}/`;
}

/** Rooms inside a room (proxmox/wire-facts) have rules of their own. */
function roomsInside(room: string): string[] {
  return Object.keys(ROOMS).filter((other) => other.startsWith(`${room}/`));
}

function directionRule(room: string, { imports }: Room): Rule {
  // Tests inside a folder use the test data of the whole folder.
  const tests = room.includes('/') ? [TESTS] : [];
  const excluded = [...roomsInside(room).map(folder), ...tests];
  return {
    name: `directions: ${room}`,
    comment: `src/${room} may import ${imports.length > 0 ? imports.join(', ') : 'nothing of src'}`,
    severity: 'error',
    from: { path: folder(room), ...(excluded.length > 0 && { pathNot: excluded }) },
    to: {
      path: '^(src|ui|test|bench|scripts)/',
      pathNot: [own(room, imports), ...imports.map(folder)],
    },
  };
}

/** A room inside a room is none of its own unless the table lists it. */
function own(room: string, imports: readonly string[]): string {
  const closed = roomsInside(room).filter((inside) => !imports.includes(inside));
  const names = closed.map((inside) => inside.slice(room.length + 1)).join('|');
  return names === '' ? folder(room) : `${folder(room)}(?!(${names})/)`;
}

function purityRules(room: string, { packages = [] }: Room): Rule[] {
  const from = { path: folder(room), pathNot: TESTS };
  return [
    {
      name: `pure: ${room} uses no Node API`,
      comment: 'pure code gets time, randomness and bytes handed in',
      severity: 'error',
      from,
      to: { dependencyTypes: ['core'] },
    },
    {
      name: `pure: ${room} uses no package`,
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

function entryRule(room: string): Rule {
  const inside = roomsInside(room).map(folder);
  return {
    name: `entry: ${room} is entered through index.ts`,
    comment: 'what others may use of a room stands in its index.ts',
    severity: 'error',
    from: { path: '^(src|test|bench|scripts)/', pathNot: [folder(room)] },
    // Builders of test data are for everybody's tests.
    to: {
      path: folder(room),
      pathNot: [`${folder(room)}index\\.ts$`, '/testing/', UI_CONTRACT, ...inside],
    },
  };
}

const GENERAL_RULES: Rule[] = [
  {
    name: 'no cycles',
    comment: 'two files that need each other are one file, or three',
    severity: 'error',
    from: {},
    to: { circular: true },
  },
  {
    name: 'nobody imports a composition root',
    comment: 'they join the adapters; nothing may depend on how',
    severity: 'error',
    from: { path: '^(src|ui)/' },
    to: { path: COMPOSITION_ROOTS.map((root) => `^${root}$`) },
  },
  {
    name: 'ui knows only the contract',
    comment: `ui/ may import ${UI_CONTRACT} and nothing else of src/`,
    severity: 'error',
    from: { path: '^ui/' },
    to: { path: '^src/', pathNot: `^${UI_CONTRACT}$` },
  },
  {
    name: 'everything resolves',
    comment: 'an import that leads nowhere would escape every other rule',
    severity: 'error',
    from: {},
    to: { couldNotResolve: true },
  },
];

function rules(): Rule[] {
  return [
    ...GENERAL_RULES,
    ...Object.entries(ROOMS).flatMap(([name, room]) => [
      directionRule(name, room),
      ...(room.pure === true ? purityRules(name, room) : []),
      ...(room.open === undefined ? [entryRule(name)] : []),
    ]),
  ];
}

/** A rule sees imports only; a file that imports nothing must have a room all the same. */
function strayFiles(sources: readonly string[]): string[] {
  return sources
    .filter((path) => path.startsWith('src/') && !COMPOSITION_ROOTS.includes(path))
    .filter((path) => !Object.keys(ROOMS).some((room) => path.startsWith(`src/${room}/`)))
    .map((path) => `every file has a room: ${path} (see scripts/layering/directions.ts)`);
}

export async function checkLayering(baseDir: string): Promise<LayeringReport> {
  const roots = ['src', 'ui', 'test', 'bench', 'scripts'].filter((name) =>
    readdirSync(baseDir).includes(name),
  );
  const result = await cruise(roots, {
    baseDir,
    ruleSet: { forbidden: rules() },
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
      ...strayFiles(own.map(({ source }) => source)),
      ...summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} imports ${to}`),
    ],
  };
}
