// SPDX-License-Identifier: Apache-2.0
// `completion SHELL` prints a script for the shell; the script calls back with `complete -- words…`.
// The library is loaded for these two commands only.
import type { Command } from 'commander';

export const COMPLETION_SHELLS = ['bash', 'zsh', 'fish', 'powershell'] as const;

export async function addCompletion(program: Command): Promise<void> {
  const { default: tab } = await import('@bomb.sh/tab/commander');
  tab(program, { completionCommandName: 'completion' });
}

/** Stands in for the library's command in `--help`, so that help need not load it. */
export function declareCompletion(program: Command): void {
  program
    .command('completion')
    .description(`print a completion script for ${COMPLETION_SHELLS.join(', ')}`)
    .argument('<shell>')
    .addHelpText(
      'after',
      '\nTo use it now, and in every shell to come:\n' +
        '  bash   source <(pvescaler completion bash)     # in ~/.bashrc\n' +
        '  zsh    source <(pvescaler completion zsh)      # in ~/.zshrc, after compinit\n' +
        '  fish   pvescaler completion fish | source      # in ~/.config/fish/config.fish\n',
    );
}
