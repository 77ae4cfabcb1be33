// SPDX-License-Identifier: Apache-2.0
// Any other join: the user's script, which reads its input from environment variables, or only the user's
// cloud-config. The machine is prepared and cleaned up as with the other recipes.
import { formatLabels } from '../../model/labels.ts';
import { accepted, refused } from '../../model/parsed.ts';
import { quoteShell } from '../../model/quote-shell.ts';
import { formatTaint } from '../../model/taints.ts';
import { CUSTOM_SCRIPT, joinLines, secretFile, TOKEN_FILE } from '../guest-file.ts';

import type { CustomJoin } from '../seed-input.ts';
import { tokenProblem } from './join-parameters.ts';
import type { JoiningNode, Recipe } from './join-plan.ts';

export const customRecipe: Recipe<CustomJoin> = (join, node) => {
  const problem = customProblem(join);
  if (problem !== undefined) return refused(problem);
  const { script, token } = join;
  return accepted({
    files: script === undefined ? [] : [{ path: CUSTOM_SCRIPT, content: script, mode: '0700' }],
    secrets: token === undefined ? [] : [secretFile(TOKEN_FILE, `${token}\n`)],
    packages: [],
    script: script === undefined ? '' : joinLines(...environment(node, token), CUSTOM_SCRIPT),
    afterJoin: '',
    services: [],
  });
};

function customProblem({ script, token, cloudConfig }: CustomJoin): string | undefined {
  if (script === undefined && cloudConfig === undefined) {
    return 'a custom join needs a script or a cloud-config';
  }
  if (script !== undefined && !script.startsWith('#!')) {
    return "the script of a custom join must start with '#!'";
  }
  return token === undefined ? undefined : tokenProblem(token);
}

function environment(node: JoiningNode, token: string | undefined): string[] {
  const { machine, registration } = node;
  const values: Readonly<Record<string, string>> = {
    NODE_NAME: registration.nodeName,
    PROVIDER_ID: registration.providerId,
    MACHINE_ID: machine.id,
    VM_ID: String(machine.vmId),
    POOL: machine.pool,
    REGION: machine.region,
    HOST: machine.host,
    NODE_LABELS: formatLabels(registration.kubeletLabels),
    NODE_TAINTS: registration.taints.map(formatTaint).join(','),
  };
  const exports = Object.entries(values).map(
    ([name, value]) => `export PVESCALER_${name}=${quoteShell(value)}`,
  );
  // Read from the file at run time: the script itself never contains the secret.
  return token === undefined
    ? exports
    : [
        ...exports,
        `export PVESCALER_TOKEN_FILE=${TOKEN_FILE}`,
        `PVESCALER_TOKEN="$(cat ${TOKEN_FILE})"`,
        'export PVESCALER_TOKEN',
      ];
}
