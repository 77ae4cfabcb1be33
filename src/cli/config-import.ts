// SPDX-License-Identifier: Apache-2.0
import { type Command, Option } from 'commander';
import { InvalidConfig } from '../ports/errors.ts';
import { EXTERNAL_CODES } from '../ports/external-codes.ts';
import type { CommandHost } from './context.ts';
import { parseFileName, writeResult } from './write-result.ts';

const SYSTEMS = ['externalgrpc', 'proxmox-autoscaler', 'vm-plan', 'kubenodesmith'] as const;

interface ImportOptions {
  readonly from: (typeof SYSTEMS)[number];
  readonly output?: string;
  readonly force?: true;
  readonly json?: true;
}

export function addConfigImport(parent: Command, host: CommandHost): void {
  parent
    .command('import')
    .description(
      'convert the config file of another autoscaler, and report what cannot be converted',
    )
    .argument('<file>', 'config file of the other system')
    .addOption(
      new Option('--from <system>', 'system that the file belongs to')
        .choices(SYSTEMS)
        .makeOptionMandatory(),
    )
    .option('-o, --output <file>', 'write to this file instead of standard output', parseFileName)
    .option('--force', 'overwrite an existing file')
    .option('--json', 'print config and notes as one JSON object')
    .action((file: string, options: ImportOptions) => runImport(host, file, options));
}

async function runImport(host: CommandHost, file: string, options: ImportOptions): Promise<void> {
  const { context } = host;
  const text = await context.files.read(file).catch(() => undefined);
  if (text === undefined) {
    throw new InvalidConfig('CONFIG_UNREADABLE', `cannot read ${file}`, {
      hint: 'Give the path of a config file of the other system.',
    });
  }
  const { importConfig, importReportJson, renderImportProblems, renderImportReport } = await import(
    '../config/index.ts'
  );
  const result = importConfig({
    from: options.from,
    fileName: file,
    text,
    environment: context.environment,
  });
  if (options.json === true) {
    const report = result.ok ? { ...result, ...importReportJson(result.notes) } : result;
    context.out(`${JSON.stringify(report, null, 2)}\n`);
  } else if (result.ok) {
    await writeResult(context, result.yaml, options);
    context.err(renderImportReport(result.notes));
  } else {
    context.err(renderImportProblems(result.problems));
  }
  if (!result.ok) host.exitWith(EXTERNAL_CODES.InvalidConfig.exitCode);
}
