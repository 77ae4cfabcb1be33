// SPDX-License-Identifier: Apache-2.0
// Reports unknown variables with our prefix. They are typing mistakes that would otherwise have no effect.
import type { Problem } from '../problem.ts';
import { quoteKey } from '../secrets/detect-secret.ts';
import { closestMatch } from '../values/closest-match.ts';
import { CONFIG_PATH_VARIABLES, VARIABLES } from './variables.ts';

const PREFIX = 'PVESCALER_';
/** Set by Kubernetes in every pod of a namespace that has a Service named pvescaler. */
const SERVICE_LINK_VARIABLE = /^PVESCALER_(SERVICE_|PORT$|PORT_)/;

export function findUnknownVariables(
  environment: Readonly<Record<string, string | undefined>>,
  tree: unknown,
): readonly Problem[] {
  // `secretEnv` may name any variable, including one with our prefix.
  const named = JSON.stringify(tree);
  const known = [...CONFIG_PATH_VARIABLES, ...VARIABLES.map(({ name }) => name)].filter((name) =>
    name.startsWith(PREFIX),
  );
  return Object.keys(environment)
    .filter(
      (name) =>
        name.startsWith(PREFIX) && !known.includes(name) && !SERVICE_LINK_VARIABLE.test(name),
    )
    .filter((name) => !named.includes(`"${name}"`))
    .map((name) => {
      const closest = closestMatch(name, known);
      return {
        file: `environment:${quoteKey(name).replaceAll("'", '')}`,
        line: 0,
        col: 0,
        path: '',
        severity: 'warning' as const,
        message: `unknown environment variable${closest === undefined ? '' : `; did you mean ${closest}?`}`,
        ...(closest !== undefined && { suggestion: closest }),
      };
    });
}
