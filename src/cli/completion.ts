// SPDX-License-Identifier: Apache-2.0
// `completion SHELL` prints a script for the shell; the script runs `complete -- words…` for candidates.
import { Argument, type Command } from 'commander';
import type { ReadNames } from './completion-candidates.ts';
import { COMPLETION_SHELLS, completionScript } from './completion-scripts.ts';
import type { CommandHost } from './context.ts';

export function addCompletion(program: Command, { context }: CommandHost): void {
  program
    .command('completion')
    .description(`print a completion script for ${COMPLETION_SHELLS.join(', ')}`)
    .addArgument(new Argument('<shell>', 'name of the shell').choices(COMPLETION_SHELLS))
    .addHelpText(
      'after',
      '\nTo load it, in this shell or in every new one:\n' +
        '  bash   source <(pvescaler completion bash)     # in ~/.bashrc\n' +
        '  zsh    source <(pvescaler completion zsh)      # in ~/.zshrc, after compinit\n' +
        '  fish   pvescaler completion fish | source      # in ~/.config/fish/config.fish\n' +
        '\nNames come from the config file and the state database.\n',
    )
    .action((shell: (typeof COMPLETION_SHELLS)[number]) => context.out(completionScript(shell)));
  program
    .command('complete', { hidden: true })
    .description('print candidates for the last word; called by the completion scripts')
    .argument('[words...]')
    .action(async (words: readonly string[]) => {
      const readNames: ReadNames = async (kind, before) => {
        const { namesOf } = await import('./completion-names.ts');
        return namesOf(context, kind, before);
      };
      const { completionsFor } = await import('./completion-candidates.ts');
      const candidates = await completionsFor(program, words, readNames);
      const lines = candidates.map(({ value, description }) =>
        description === '' ? `${value}\n` : `${value}\t${description}\n`,
      );
      context.out(lines.join(''));
    });
}
