// SPDX-License-Identifier: Apache-2.0
// Turns the config file of another system into ours and says what it could not carry over.
//
// Owns: reading those files, what each of their keys means there, and which of our keys it becomes. Every key
// is carried over or noted; what is printed passes our own validator; a secret is never printed.
// Must not know: files (the text is handed in), the terminal, and what our settings do.
// Start reading: a folder per system, each with an `index.ts`; `work.ts` is what they write to.

import { API_VERSION } from '../schema/index.ts';
import type { Context } from './context.ts';
import { mapExternalgrpc } from './externalgrpc/index.ts';
import { mapKubenodesmith } from './kubenodesmith/index.ts';
import { type Opened, openSource } from './open-source.ts';
import { makeAcceptable } from './ours/acceptance.ts';
import { Draft } from './ours/draft.ts';
import { mapProxmoxAutoscaler } from './proxmox-autoscaler/index.ts';
import { readSettings, toSection } from './proxmox-autoscaler/settings-tree.ts';
import type { ImportProblem, ImportRequest, ImportResult, Position, System } from './result.ts';
import { Reader } from './source/reader.ts';
import { SecretGuard } from './source/secret-guard.ts';
import type { TextProblem } from './source/yaml-tree.ts';
import { mapVmPlan } from './vm-plan/index.ts';
import { formatPath, Work } from './work.ts';

export {
  type ImportReportJson,
  importReportJson,
  renderImportProblems,
  renderImportReport,
} from './report.ts';
export {
  type Environment,
  type ImportNote,
  type ImportProblem,
  type ImportRequest,
  type ImportResult,
  type Severity,
  type System,
} from './result.ts';

const LARGEST = 1_000_000;
const START: Position = { line: 1, column: 1 };

/** The other systems as messages name them. */
const NAMES: Readonly<Record<System, string>> = {
  externalgrpc: 'ca-proxmox-externalgrpc',
  'proxmox-autoscaler': 'proxmox-autoscaler',
  'vm-plan': 'the VM creation plan',
  kubenodesmith: 'KubeNodeSmith',
};

const ORDER = [
  'apiVersion',
  'mode',
  'cluster',
  'state',
  'grpc',
  'http',
  'log',
  'intervals',
  'cleanup',
  'proxmox',
  'images',
  'templates',
  'sizes',
  'ssh',
  'readiness',
  'join',
  'guards',
  'pools',
] as const;

const EXISTING =
  'VMs that are there already carry no mark of ours: they are neither counted nor touched; drain and remove them when the new ones are there';

/** Never throws. The text of a secret appears neither in the YAML nor in notes or problems. */
export function importConfig(request: ImportRequest): ImportResult {
  // Before anything looks at the text: all of it is work in proportion to its length.
  if (request.text.length > LARGEST) {
    const message = 'is larger than 1 MB: this is no config file';
    return { ok: false, problems: [{ file: request.fileName, ...START, message }] };
  }
  const guard = guardFor(request);
  const opened = openSource(request);
  if (opened.kind === 'failed') return refused(request, guard, opened.problems);
  if (opened.kind === 'yaml') guard.addTree(opened.tree);
  const draft = new Draft({ header: header(request, guard), order: ORDER });
  const work = new Work({ them: NAMES[request.from], draft, guard });
  const problems = mapOpened(request, opened, work);
  if (problems.length > 0) return refused(request, guard, problems);
  work.carryOwn(['apiVersion'], API_VERSION, '');
  if (request.from !== 'vm-plan') work.note({ path: 'existing VMs' }, 'needs-you', EXISTING);
  const accepted = makeAcceptable(work, draft);
  if (accepted.ok) return { ok: true, yaml: accepted.yaml, notes: work.notes };
  const findings = accepted.findings.map(({ path, message }) => ({
    ...(work.originOf(path)?.at ?? START),
    message: `cannot be turned into a valid config: ${formatPath(path)}: ${message}`,
  }));
  return refused(request, guard, findings);
}

function guardFor({ text, environment = {} }: ImportRequest): SecretGuard {
  const guard = new SecretGuard(text);
  for (const [name, value] of Object.entries(environment)) {
    if (/SECRET|TOKEN$|PASSWORD/.test(name) && value !== undefined) guard.add(value);
  }
  return guard;
}

function header({ from, fileName }: ImportRequest, guard: SecretGuard): string {
  const name = guard.hide(fileName.replaceAll(/\s+/g, ' '));
  return [
    ` Made by \`pvescaler config import --from ${from}\` from ${name}.`,
    ' The remark behind or above a value names the key that it came from.',
    ' Before you use this file: look for REPLACE THIS, and put secrets into the files that are named.',
  ].join('\n');
}

function refused(
  { fileName }: ImportRequest,
  guard: SecretGuard,
  problems: readonly TextProblem[],
): ImportResult {
  const told = problems.map(
    ({ line, column, message }): ImportProblem => ({
      file: fileName,
      line,
      column,
      message: guard.hide(message),
    }),
  );
  return { ok: false, problems: told };
}

type Usable = Exclude<Opened, { kind: 'failed' }>;

function mapOpened(request: ImportRequest, opened: Usable, work: Work): readonly TextProblem[] {
  const { environment = {} } = request;
  const context: Context = { work, read: new Reader(work), environment };
  if (opened.kind === 'python') return mapPython(context, opened);
  const repeated = opened.repeated.map(({ at, path }) => ({ at, path }));
  if (request.from === 'kubenodesmith' && repeated.length > 0) {
    return repeated.map(({ at }) => ({
      ...(at ?? START),
      message: 'the key stands twice in the same mapping',
    }));
  }
  for (const where of opened.repeated) {
    work.note(where, 'ignored-by-them', 'stands twice in the same mapping; the later one wins');
  }
  if (request.from === 'externalgrpc') mapExternalgrpc(context, opened.tree);
  else if (request.from === 'kubenodesmith') mapKubenodesmith(context, opened.tree);
  else mapVmPlan(context, opened.tree);
  return [];
}

function mapPython(
  context: Context,
  { text, place }: Extract<Opened, { kind: 'python' }>,
): readonly TextProblem[] {
  const read = readSettings({ text, environment: context.environment, place });
  if (!read.ok) return [read.problem];
  const settings = toSection(context, read);
  if (![...read.module.settings.keys()].some((key) => SETTING.test(key))) {
    return [
      {
        ...place(START),
        message: 'has no setting of proxmox-autoscaler in it (pxe_host, min_size, …)',
      },
    ];
  }
  mapProxmoxAutoscaler(context, settings);
  return [];
}

const SETTING = /^(?:pxe_|scale_|min_size$|max_|scan_interval$|node_group_label$|ok_total)/;
