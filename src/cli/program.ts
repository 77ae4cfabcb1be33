// SPDX-License-Identifier: Apache-2.0
// The tree of commands. Each command has a file here, and imports what it needs when it runs.
import { Command } from 'commander';
import { addCerts } from './certs.ts';
import { paint } from './colors.ts';
import { addCompletion } from './completion.ts';
import { addConfigImport } from './config-import.ts';
import { addConfigInit } from './config-init.ts';
import { addConfigSchema } from './config-schema.ts';
import { addConfigShow } from './config-show.ts';
import { addConfigValidate } from './config-validate.ts';
import type { ProgramHost } from './context.ts';
import { addDoctor } from './doctor.ts';
import { EXAMPLES, FIRST_EXAMPLES } from './examples.ts';
import { addExplain } from './explain.ts';
import { addGlobalOptions } from './invocation.ts';
import { addMachineDelete } from './machine-delete.ts';
import { addMachineShow } from './machine-show.ts';
import { addMachines } from './machines.ts';
import { addOrphans } from './orphans.ts';
import { addPlan } from './plan.ts';
import { addPoolConfirmLost } from './pool-confirm-lost.ts';
import { addPoolDelete } from './pool-delete.ts';
import { addPoolResume } from './pool-resume.ts';
import { addPoolScale } from './pool-scale.ts';
import { addPools } from './pools.ts';
import { addReplay } from './replay.ts';
import { addSelftest } from './selftest.ts';
import { addServe } from './serve.ts';
import { addSimKubernetes } from './sim-kubernetes.ts';
import { addSimProxmox } from './sim-proxmox.ts';
import { addStateExport } from './state-export.ts';
import { addStateImport } from './state-import.ts';
import { addStateJournal } from './state-journal.ts';
import { addStateShow } from './state-show.ts';
import { addTemplate } from './template.ts';
import { commandPath, usageError } from './usage-error.ts';
import { addVm } from './vm.ts';

export function buildProgram(host: ProgramHost): Command {
  const program = createProgram(host);
  addServe(program, host);
  addDoctor(program, host);
  addSelftest(program, host);
  addPools(program, host);
  const pool = program
    .command('pool')
    .description(
      'scale or resume a pool, confirm that machines are lost, or delete a removed pool',
    );
  addPoolScale(pool, host);
  addPoolConfirmLost(pool, host);
  addPoolResume(pool, host);
  addPoolDelete(pool, host);
  addMachines(program, host);
  const machine = program.command('machine').description('show or delete machines');
  addMachineShow(machine, host);
  addMachineDelete(machine, host);
  addVm(program, host);
  addTemplate(program, host);
  addPlan(program, host);
  addExplain(program, host);
  addReplay(program, host);
  addOrphans(program, host);
  addCerts(program, host);
  const config = program
    .command('config')
    .description('check, show, create and import config files');
  addConfigValidate(config, host);
  addConfigShow(config, host);
  addConfigInit(config, host);
  addConfigImport(config, host);
  addConfigSchema(config, host);
  const state = program.command('state').description('inspect, export and import the state');
  addStateShow(state, host);
  addStateJournal(state, host);
  addStateExport(state, host);
  addStateImport(state, host);
  const sim = program
    .command('sim')
    .description('run simulators, to try pvescaler without servers');
  addSimProxmox(sim, host);
  addSimKubernetes(sim, host);
  addCompletion(program, host);
  finish(program, host);
  return program;
}

function createProgram(host: ProgramHost): Command {
  const { context } = host;
  return (
    new Command('pvescaler')
      .description(
        'Worker nodes for Kubernetes, created on Proxmox VE on demand and removed when idle.',
      )
      .version(context.version, '-V, --version', 'print the version')
      .helpOption('-h, --help', 'show help for a command')
      .helpCommand('help [command]', 'show help for a command')
      .configureOutput({
        writeOut: (text) => context.out(text),
        writeErr: (text) => context.err(text),
        outputError: () => undefined, // index.ts prints errors
        getOutHasColors: () => host.colors.out,
      })
      .configureHelp({ styleTitle: (title) => paint(title, 'bold') })
      .hook('preAction', (_program, command) => host.begin(command))
      // Otherwise `sim proxmox --version 8.4` would print the version of pvescaler.
      .enablePositionalOptions()
      .exitOverride()
  );
}

const MISSING_OPTION = 'commander.missingMandatoryOptionValue';

/** A misspelt option is the better explanation of a missing one, which the parser finds first. */
function refuseUnknownOption(command: Command): void {
  const unknown = command.args.find((word) => /^-./.test(word));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the parser's own check, which its types leave out
  const parser = command as unknown as { unknownOption(flag: string): void };
  if (unknown !== undefined) parser.unknownOption(unknown);
}

/** What every command has: global options, examples, and errors that name it. */
function finish(command: Command, host: ProgramHost): void {
  command.exitOverride((error) => {
    // Help or the version was printed.
    if (error.exitCode === 0 || error.code === 'commander.help') throw error;
    host.begin(command);
    if (error.code === MISSING_OPTION) refuseUnknownOption(command);
    throw usageError(command, error);
  });
  const isRunnable = EXAMPLES[commandPath(command)] !== undefined;
  if (command.parent === null || isRunnable) addGlobalOptions(command);
  const examples = examplesOf(command).map((line) => `  ${line}`);
  command.addHelpText('after', `\nExamples:\n${examples.join('\n')}`);
  for (const child of command.commands) finish(child, host);
}

/** Of a group of commands: one of each. */
function examplesOf(command: Command): readonly string[] {
  if (command.parent === null) return FIRST_EXAMPLES;
  const own = EXAMPLES[commandPath(command)];
  return own ?? command.commands.flatMap((child) => examplesOf(child).slice(0, 1));
}
