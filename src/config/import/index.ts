// SPDX-License-Identifier: Apache-2.0
// Converts the config file of another system to ours and reports what could not be converted.
//
// Owns: reading those files, the meaning of each of their keys, and the key of our config that it becomes.
// Every key is imported or has a note. The output passes our own validation and never contains a secret.
// Must not know: files (the caller passes the text), the terminal, and what our settings do.
// Start reading: one folder per system, each with an `index.ts`; all of them write through `writer.ts`.

import { formatConfigPath } from '../config-path.ts';
import { API_VERSION } from '../schema/index.ts';
import { SOURCE_SYSTEM_NAMES } from '../source-systems.ts';
import type { ImportContext } from './context.ts';
import { mapExternalgrpc } from './externalgrpc/index.ts';
import { mapKubenodesmith } from './kubenodesmith/index.ts';
import { type OpenedSource, openSource } from './open-source.ts';
import { Draft } from './output/draft.ts';
import { makeValid } from './output/make-valid.ts';
import { mapProxmoxAutoscaler } from './proxmox-autoscaler/index.ts';
import { readSettings, toSettingsSection } from './proxmox-autoscaler/settings-tree.ts';
import type { ImportProblem, ImportRequest, ImportResult, SourcePosition } from './result.ts';
import { SourceReader } from './source/reader.ts';
import { SecretRedactor } from './source/secret-redactor.ts';
import type { SourceProblem } from './source/yaml-tree.ts';
import { mapVmPlan } from './vm-plan/index.ts';
import { ImportWriter } from './writer.ts';

export {
  importReportJson,
  renderImportProblems,
  renderImportReport,
} from './render-report.ts';
export {
  type ImportRequest,
  type ImportResult,
} from './result.ts';

const MAX_TEXT_LENGTH = 1_000_000;
const START: SourcePosition = { line: 1, column: 1 };

const SECTION_ORDER = [
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

const EXISTING_VMS_NOTE =
  'have no ownership marker, so pvescaler neither counts nor changes them; drain and remove them once the new machines are ready';

/** Never throws. No secret appears in the YAML, the notes or the problems. */
export function importConfig(request: ImportRequest): ImportResult {
  // Checked first, because all further work grows with the length of the text.
  if (request.text.length > MAX_TEXT_LENGTH) {
    const message = 'is larger than 1 MB; this is not a config file';
    return { ok: false, problems: [{ file: request.fileName, ...START, message }] };
  }
  const redactor = createRedactor(request);
  const opened = openSource(request);
  if (opened.kind === 'failed') return failedImport(request, redactor, opened.problems);
  if (opened.kind === 'yaml') redactor.addTree(opened.tree);
  const draft = new Draft({ header: renderHeader(request, redactor), order: SECTION_ORDER });
  const writer = new ImportWriter({
    sourceName: SOURCE_SYSTEM_NAMES[request.from],
    draft,
    redactor,
  });
  const problems = mapSource(request, opened, writer);
  if (problems.length > 0) return failedImport(request, redactor, problems);
  writer.setOwn(['apiVersion'], API_VERSION, '');
  if (request.from !== 'vm-plan')
    writer.note({ path: 'existing VMs' }, 'action-required', EXISTING_VMS_NOTE);
  const accepted = makeValid(writer, draft);
  if (accepted.ok) return { ok: true, yaml: accepted.yaml, notes: writer.notes };
  const findings = accepted.findings.map(({ path, message }) => ({
    ...(writer.findOrigin(path)?.at ?? START),
    message: `cannot be converted to a valid config: ${formatConfigPath(path)}: ${message}`,
  }));
  return failedImport(request, redactor, findings);
}

function createRedactor({ text, environment = {} }: ImportRequest): SecretRedactor {
  const redactor = new SecretRedactor(text);
  for (const [name, value] of Object.entries(environment)) {
    if (/SECRET|TOKEN$|PASSWORD/.test(name) && value !== undefined) redactor.add(value);
  }
  return redactor;
}

function renderHeader({ from, fileName }: ImportRequest, redactor: SecretRedactor): string {
  const name = redactor.redact(fileName.replaceAll(/\s+/g, ' '));
  return [
    ` Created by \`pvescaler config import --from ${from}\` from ${name}.`,
    ' The comment after or above a value names the source key.',
    ' Before you use this file: replace every value marked REPLACE THIS, and create the secret files that it names.',
  ].join('\n');
}

function failedImport(
  { fileName }: ImportRequest,
  redactor: SecretRedactor,
  problems: readonly SourceProblem[],
): ImportResult {
  const importProblems = problems.map(
    ({ line, column, message }): ImportProblem => ({
      file: fileName,
      line,
      column,
      message: redactor.redact(message),
    }),
  );
  return { ok: false, problems: importProblems };
}

type ReadableSource = Exclude<OpenedSource, { kind: 'failed' }>;

function mapSource(
  request: ImportRequest,
  opened: ReadableSource,
  writer: ImportWriter,
): readonly SourceProblem[] {
  const { environment = {} } = request;
  const context: ImportContext = { writer, reader: new SourceReader(writer), environment };
  if (opened.kind === 'python') return mapPython(context, opened);
  const repeated = opened.repeated.map(({ at, path }) => ({ at, path }));
  if (request.from === 'kubenodesmith' && repeated.length > 0) {
    return repeated.map(({ at }) => ({
      ...(at ?? START),
      message: 'duplicate key in the same mapping',
    }));
  }
  for (const where of opened.repeated) {
    writer.note(
      where,
      'ignored-by-source',
      'is a duplicate key in the same mapping; the last one is used',
    );
  }
  if (request.from === 'externalgrpc') mapExternalgrpc(context, opened.tree);
  else if (request.from === 'kubenodesmith') mapKubenodesmith(context, opened.tree);
  else mapVmPlan(context, opened.tree);
  return [];
}

function mapPython(
  context: ImportContext,
  { text, place }: Extract<OpenedSource, { kind: 'python' }>,
): readonly SourceProblem[] {
  const reader = readSettings({ text, environment: context.environment, place });
  if (!reader.ok) return [reader.problem];
  const settings = toSettingsSection(context, reader);
  if (![...reader.module.settings.keys()].some((key) => KNOWN_SETTING.test(key))) {
    return [
      {
        ...place(START),
        message: 'contains no setting of proxmox-autoscaler (pxe_host, min_size, …)',
      },
    ];
  }
  mapProxmoxAutoscaler(context, settings);
  return [];
}

const KNOWN_SETTING = /^(?:pxe_|scale_|min_size$|max_|scan_interval$|node_group_label$|ok_total)/;
