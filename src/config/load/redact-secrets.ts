// SPDX-License-Identifier: Apache-2.0
// Last protection against leaked secrets: removes known secret values from every message.
import { isMapping } from '../config-path.ts';
import { VARIABLES } from '../overrides/variables.ts';
import type { Problem } from '../problem.ts';
import { isSecretKey } from '../secrets/detect-secret.ts';
import { MASK } from '../secrets/secret.ts';

/** A shorter secret may appear in messages by coincidence. */
const MIN_SECRET_LENGTH = 6;

export function collectSecrets(
  tree: unknown,
  environment: Readonly<Record<string, string | undefined>>,
): ReadonlySet<string> {
  const inEnvironment = VARIABLES.filter(({ isSecret }) => isSecret === true).map(
    ({ name }) => environment[name],
  );
  const found = [...findSecrets(tree, false), ...inEnvironment];
  return new Set(
    found
      .filter((value) => value !== undefined)
      .map((value) => value.trim())
      .filter((value) => value.length >= MIN_SECRET_LENGTH),
  );
}

function* findSecrets(value: unknown, isSecret: boolean): Generator<string> {
  if (isSecret && typeof value === 'string') yield value;
  if (Array.isArray(value)) for (const item of value) yield* findSecrets(item, isSecret);
  if (isMapping(value)) {
    for (const [key, child] of Object.entries(value)) {
      yield* findSecrets(child, isSecretKey(key) && !isMapping(child));
    }
  }
}

export function redactProblem(problem: Problem, secrets: ReadonlySet<string>): Problem {
  let { message, path } = problem;
  for (const secret of secrets) {
    message = message.replaceAll(secret, MASK);
    path = path.replaceAll(secret, MASK);
  }
  return { ...problem, message, path };
}
