// SPDX-License-Identifier: Apache-2.0
import { Argument, type Command } from 'commander';
import { InvalidRequest } from '../ports/errors.ts';
import type { Explanation } from '../scaling/index.ts';
import { type ConfigOptions, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { withPlan } from './with-plan.ts';

const KINDS = ['pod', 'node', 'pool', 'host'] as const;

export function addExplain(parent: Command, host: CommandHost): void {
  withConfigOptions(
    parent
      .command('explain')
      .description(
        'say what the standalone autoscaler does with a pod, node, pool or host, and why',
      )
      .addArgument(new Argument('<kind>', 'pod, node, pool or host').choices(KINDS))
      .argument('<name>', 'its name; of a pod NAMESPACE/NAME, of a host REGION/NAME')
      .option('--json', 'print JSON'),
  ).action(
    (
      kind: (typeof KINDS)[number],
      name: string,
      options: ConfigOptions & { readonly json?: true },
    ) =>
      withPlan(host, options, async ({ input, decision: { plan } }) => {
        const { explain } = await import('../scaling/index.ts');
        const explanation = explain({ input, plan }, kind, name);
        if (!explanation.isKnown)
          throw new InvalidRequest('REQUEST_INVALID', `there is no ${kind} ${name}, or several`);
        host.context.out(
          options.json === true ? `${JSON.stringify(explanation, null, 2)}\n` : render(explanation),
        );
      }),
  );
}

function render({ subject, lines }: Explanation): string {
  const texts = lines.map(({ kind, text, code }) => {
    const prefix = kind === 'refusal' ? 'not done: ' : '';
    return `  ${prefix}${text}${code === undefined ? '' : ` (${code})`}`;
  });
  return `${[`${subject.kind} ${subject.name}`, ...texts].join('\n')}\n`;
}
