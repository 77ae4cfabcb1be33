// SPDX-License-Identifier: Apache-2.0
// The tree of commands. Each file of this folder adds one; what a command needs beyond its declaration is
// imported when it runs.
import { Command } from 'commander';
import { addCerts } from './certs.ts';
import { addCompletion } from './completion.ts';
import { addConfigImport } from './config-import.ts';
import { addConfigInit } from './config-init.ts';
import { addConfigSchema } from './config-schema.ts';
import { addConfigShow } from './config-show.ts';
import { addConfigValidate } from './config-validate.ts';
import type { CliContext, CommandHost } from './context.ts';
import { addMachineDelete } from './machine-delete.ts';
import { addMachineShow } from './machine-show.ts';
import { addMachines } from './machines.ts';
import { addOrphans } from './orphans.ts';
import { addPoolScale } from './pool-scale.ts';
import { addPools } from './pools.ts';
import { addServe } from './serve.ts';
import { addSimProxmox } from './sim-proxmox.ts';
import { addStateJournal } from './state-journal.ts';
import { addStateShow } from './state-show.ts';

export function buildProgram(context: CliContext, exitWith: (code: number) => void): Command {
  const host: CommandHost = { context, exitWith };
  const program = new Command('pvescaler')
    .description(
      'Worker nodes for Kubernetes, made from Proxmox VE on demand and given back when they are idle.',
    )
    .version(context.version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'show help for a command')
    .helpCommand('help [command]', 'show help for a command')
    .configureOutput({
      writeOut: (text) => context.out(text),
      writeErr: (text) => context.err(text),
    })
    .showHelpAfterError('(add --help to see what can be said here)')
    // `sim proxmox --version 8.4` is not a question for our own version.
    .enablePositionalOptions()
    .exitOverride();

  addServe(program, host);
  addPools(program, host);
  const pool = program.command('pool').description('change one pool');
  addPoolScale(pool, host);
  addMachines(program, host);
  const machine = program.command('machine').description('look at, or delete, single machines');
  addMachineShow(machine, host);
  addMachineDelete(machine, host);
  addOrphans(program, host);
  addCerts(program, host);
  const config = program
    .command('config')
    .description('check, explain, write and import config files');
  addConfigValidate(config, host);
  addConfigShow(config, host);
  addConfigInit(config, host);
  addConfigImport(config, host);
  addConfigSchema(config, host);
  const state = program.command('state').description('look into the state database');
  addStateShow(state, host);
  addStateJournal(state, host);
  const sim = program
    .command('sim')
    .description('simulated peers, to try everything without owning a server');
  addSimProxmox(sim, host);
  addCompletion(program, host);
  return program;
}
