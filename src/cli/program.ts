// SPDX-License-Identifier: Apache-2.0
// The tree of commands. Each command has a file here, and imports what it needs when it runs.
import { Command } from 'commander';
import { addCerts } from './certs.ts';
import { addCompletion } from './completion.ts';
import { addConfigImport } from './config-import.ts';
import { addConfigInit } from './config-init.ts';
import { addConfigSchema } from './config-schema.ts';
import { addConfigShow } from './config-show.ts';
import { addConfigValidate } from './config-validate.ts';
import type { CliContext, CommandHost } from './context.ts';
import { addDoctor } from './doctor.ts';
import { addExplain } from './explain.ts';
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
import { addStateJournal } from './state-journal.ts';
import { addStateShow } from './state-show.ts';
import { addTemplate } from './template.ts';
import { addVm } from './vm.ts';

export function buildProgram(context: CliContext, exitWith: (code: number) => void): Command {
  const host: CommandHost = { context, exitWith };
  const program = new Command('pvescaler')
    .description(
      'Worker nodes for Kubernetes, created on Proxmox VE on demand and removed when idle.',
    )
    .version(context.version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'show help for a command')
    .helpCommand('help [command]', 'show help for a command')
    .configureOutput({
      writeOut: (text) => context.out(text),
      writeErr: (text) => context.err(text),
    })
    .showHelpAfterError('(add --help for the available options)')
    // Otherwise `sim proxmox --version 8.4` would print the version of pvescaler.
    .enablePositionalOptions()
    .exitOverride();

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
  const state = program.command('state').description('inspect the state database');
  addStateShow(state, host);
  addStateJournal(state, host);
  const sim = program
    .command('sim')
    .description('run simulators, to try pvescaler without servers');
  addSimProxmox(sim, host);
  addSimKubernetes(sim, host);
  addCompletion(program, host);
  return program;
}
