// SPDX-License-Identifier: Apache-2.0
// `completion SHELL` prints a script for the shell; the script calls back with `complete -- words…`.
import { Argument, type Command } from 'commander';
import { completionsFor } from './completion-candidates.ts';
import { COMPLETION_SHELLS, completionScript } from './completion-scripts.ts';
import type { CommandHost } from './context.ts';

export function addCompletion(program: Command, { context }: CommandHost): void {
  program
    .command('completion')
    .description(`print a completion script for ${COMPLETION_SHELLS.join(', ')}`)
    .addArgument(new Argument('<shell>', 'the shell').choices(COMPLETION_SHELLS))
    .addHelpText(
      'after',
      '\nTo use it now, and in every shell to come:\n' +
        '  bash   source <(pvescaler completion bash)     # in ~/.bashrc\n' +
        '  zsh    source <(pvescaler completion zsh)      # in ~/.zshrc, after compinit\n' +
        '  fish   pvescaler completion fish | source      # in ~/.config/fish/config.fish\n',
    )
    .action((shell: (typeof COMPLETION_SHELLS)[number]) => context.out(completionScript(shell)));
  program
    .command('complete', { hidden: true })
    .description('what could stand at the end of these words; called by the completion scripts')
    .argument('[words...]')
    .action((words: readonly string[]) => {
      const lines = completionsFor(program, words).map(({ value, description }) =>
        description === '' ? `${value}\n` : `${value}\t${description}\n`,
      );
      context.out(lines.join(''));
    });
}
