// SPDX-License-Identifier: Apache-2.0
// For tests: a small valid config to modify, and loading without files.
import { type LoadInput, type LoadResult, loadConfig } from '../load/load-config.ts';
import { renderProblem } from '../problem.ts';

export const REGION_LINES = `proxmox:
  lab:
    endpoints: [https://pve1:8006]
    token: { id: "scaler@pve!k8s", secretFile: /etc/token }
`;

export const IMAGE_LINES = `images:
  jammy: { url: https://images/jammy.img, checksumUrl: https://images/SHA256SUMS }
`;

/** A valid config that tests append to or modify. */
export const VALID = `${REGION_LINES}${IMAGE_LINES}pools:
  - name: small
    size: { cpu: 2, memory: 4Gi }
`;

export function loadText(text: string | undefined, more: Partial<LoadInput> = {}): LoadResult {
  return loadConfig({
    file: text === undefined ? undefined : { path: 'c.yaml', text },
    environment: {},
    flags: [],
    homeFolder: '/home/me',
    ...more,
  });
}

export function renderedProblems({ problems }: LoadResult): readonly string[] {
  return problems.map(renderProblem);
}

/** The rendered problems of a text. */
export function loadProblems(text: string | undefined, more: Partial<LoadInput> = {}) {
  return renderedProblems(loadText(text, more));
}
