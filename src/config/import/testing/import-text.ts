// SPDX-License-Identifier: Apache-2.0
// For tests: imports a text or a fixture and gives access to the result.

import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { SourceSystem } from '../../source-systems.ts';
import { importConfig } from '../index.ts';
import type { ImportNote, ImportProblem, SourceEnvironment } from '../result.ts';

export interface ImportedText {
  readonly yaml: string;
  readonly notes: readonly ImportNote[];
  /** The value at a dotted path of the output, such as `pools.0.name`. */
  readonly valueAt: (path: string) => unknown;
  /** All notes about a key of the source file, as `severity: message`. */
  readonly notesAbout: (path: string) => readonly string[];
}

interface Options {
  readonly environment?: SourceEnvironment;
  readonly fileName?: string;
}

export function importText(from: SourceSystem, text: string, options: Options = {}): ImportedText {
  const result = importConfig({ from, fileName: 'theirs', text, ...options });
  if (!result.ok) throw new Error(`was refused: ${JSON.stringify(result.problems)}`);
  const config: unknown = parse(result.yaml);
  return {
    ...result,
    valueAt: (path) => path.split('.').reduce(step, config),
    notesAbout: (path) =>
      result.notes
        .filter((note) => note.path === path)
        .map(({ severity, message }) => `${severity}: ${message}`),
  };
}

function step(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null
    ? Object.entries(value).find(([name]) => name === key)?.[1]
    : undefined;
}

export function importProblems(from: SourceSystem, text: string): readonly ImportProblem[] {
  const result = importConfig({ from, fileName: 'theirs', text });
  if (result.ok) throw new Error(`was accepted:\n${result.yaml}`);
  return result.problems;
}

export function readFixture(name: string): string {
  return readFileSync(new URL(`../fixtures/${name}`, import.meta.url), 'utf8');
}

export const FIXTURES: readonly (readonly [system: SourceSystem, name: string])[] = [
  ['externalgrpc', 'externalgrpc/full.yaml'],
  ['externalgrpc', 'externalgrpc/minimal.yaml'],
  ['proxmox-autoscaler', 'proxmox-autoscaler/settings.py'],
  ['proxmox-autoscaler', 'proxmox-autoscaler/configmap.yaml'],
  ['vm-plan', 'vm-plan/config.yaml'],
  ['vm-plan', 'vm-plan/template.config.yml'],
  ['vm-plan', 'vm-plan/vm.config.yml'],
  ['kubenodesmith', 'kubenodesmith/scaler-config.yaml'],
];
