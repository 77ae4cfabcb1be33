// SPDX-License-Identifier: Apache-2.0
import { Argument, type Command } from 'commander';
import { NotFound } from '../ports/errors.ts';
import type { Explained, Explanation, SubjectKind } from '../scaling/index.ts';
import { type ConfigOptions, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { completeNodeName } from './find-machine.ts';
import { withPlan } from './make-plan.ts';
import { type OutputOptions, withOutputOption } from './output-option.ts';
import { printObjects } from './print-objects.ts';

interface ExplainOptions extends ConfigOptions, OutputOptions {
  readonly input?: string;
}

const KINDS = ['pod', 'node', 'pool', 'host'] as const satisfies readonly SubjectKind[];

export function addExplain(parent: Command, host: CommandHost): void {
  const command = parent
    .command('explain')
    .description('explain what the standalone autoscaler does with a pod, node, pool or host')
    .addArgument(new Argument('<kind>', 'what to explain').choices(KINDS))
    .argument(
      '<name>',
      'its name; of a pod also namespace/name, of a host also region/name, of a node also a unique prefix',
    )
    .option(
      '--input <file>',
      'explain a file of pvescaler plan --save, without reading the cluster',
    );
  withConfigOptions(withOutputOption(command)).action(
    async (kind: SubjectKind, name: string, options: ExplainOptions) => {
      const print = (explained: Explained) =>
        printExplanation(host, explained, {
          ...options,
          kind,
          name: kind === 'node' ? completeNodeName(explained, name) : name,
        });
      if (options.input !== undefined) return print(await explainStored(host, options.input));
      return withPlan(host, options, async ({ input, decision: { plan } }, { fleet }) => {
        const { removedPools } = await fleet.status();
        return print({ input, plan, removedPools });
      });
    },
  );
}

async function explainStored({ context }: CommandHost, file: string): Promise<Explained> {
  const { decide, restoreInput } = await import('../scaling/index.ts');
  const { readStoredPlan } = await import('./stored-plan.ts');
  const input = restoreInput(await readStoredPlan(context, file));
  return { input, plan: decide(input).plan };
}

async function printExplanation(
  host: CommandHost,
  explained: Explained,
  {
    kind,
    name,
    ...options
  }: ExplainOptions & { readonly kind: SubjectKind; readonly name: string },
): Promise<void> {
  const { explain } = await import('../scaling/index.ts');
  const explanation = explain(explained, kind, name);
  if (!explanation.isKnown) throw notFound(kind, name, explanation);
  const { formatExplanation } = await import('./format-plan.ts');
  await printObjects(host, options, {
    value: explanation,
    names: [explanation.subject.name],
    text: () => formatExplanation(explanation),
  });
}

function notFound(kind: SubjectKind, name: string, { lines }: Explanation): NotFound {
  const hint = {
    pod: 'Name it namespace/name; a pod that has ended is not known.',
    node: 'kubectl get nodes lists them.',
    pool: 'pvescaler pools lists them.',
    host: 'Name it region/name; a host that no pool may use is not known.',
    cluster: '',
  }[kind];
  return new NotFound(
    kind === 'pool' ? 'POOL_NOT_FOUND' : 'RECORD_NOT_FOUND',
    [`there is no ${kind} ${name}`, ...lines.map(({ text }) => text)].join('; '),
    { hint },
  );
}
