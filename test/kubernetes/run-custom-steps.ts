// SPDX-License-Identifier: Apache-2.0
import { readText } from '../../src/ports/contract/transport.contract.ts';
import type { Transport } from '../../src/ports/transport.ts';
import { CUSTOM_STEPS, type CustomStep } from './custom-resource-steps.ts';
import { sortCauses } from './invalid-widgets.ts';

const MAX_ATTEMPTS = 100;

/** Runs all steps on an API server without the definition. Returns the responses in the form of `expected`. */
export async function runCustomSteps(
  transport: Transport,
  server: string,
  pause: () => Promise<void>,
): Promise<readonly { readonly title: string; readonly response: unknown }[]> {
  const results: { title: string; response: unknown }[] = [];
  let last = { uid: 'UID', resourceVersion: 'VERSION' };
  for (const step of CUSTOM_STEPS) {
    const answer = await sendUntil(transport, server, { step, last, pause });
    const { body } = answer;
    const isWidget = body?.kind === 'Widget' && body.metadata !== undefined;
    results.push({ title: step.title, response: summarize(answer, last) });
    if (isWidget) last = { ...last, ...body.metadata };
  }
  return results;
}

interface LastObject {
  readonly uid: string;
  readonly resourceVersion: string;
}

interface SentStep {
  readonly step: CustomStep;
  readonly last: LastObject;
  readonly pause: () => Promise<void>;
}

async function sendUntil(transport: Transport, server: string, sent: SentStep): Promise<Answer> {
  const { until } = sent.step;
  let answer = await send(transport, server, sent);
  for (let attempt = 1; attempt < MAX_ATTEMPTS; attempt += 1) {
    if (until === undefined || answer.status === until) break;
    await sent.pause();
    answer = await send(transport, server, sent);
  }
  return answer;
}

async function send(
  transport: Transport,
  server: string,
  { step, last }: SentStep,
): Promise<Answer> {
  const response = await transport.request({
    method: step.method,
    url: `${server}${step.path}`,
    headers: {
      accept: step.accept ?? 'application/json',
      'content-type': step.type ?? 'application/json',
      'user-agent': 'steps',
    },
    ...(step.body && {
      body: JSON.stringify(step.body)
        .replaceAll('"UID"', `"${last.uid}"`)
        .replaceAll('"VERSION"', `"${last.resourceVersion}"`),
    }),
    timeoutMs: 10_000,
  });
  const { status } = response;
  const text = await readText(response.body);
  return text.startsWith('{')
    ? { status, text, body: JSON.parse(text) as ApiBody }
    : { status, text };
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly body?: ApiBody;
}

interface ApiBody {
  readonly kind: string;
  readonly metadata?: {
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly generation?: number;
    readonly labels?: object;
  };
  readonly reason?: string;
  readonly message?: string;
  readonly details?: { readonly causes?: readonly object[] };
  readonly items?: readonly object[];
  readonly columnDefinitions?: readonly Readonly<Record<string, string>>[];
  readonly rows?: readonly { readonly cells: readonly unknown[] }[];
  readonly spec?: { readonly names?: object };
  readonly status?: DefinitionStatus;
}

interface DefinitionStatus {
  readonly storedVersions?: readonly string[];
  readonly conditions?: readonly Readonly<Record<string, string>>[] | null;
}

function summarize({ status, text, body }: Answer, last: LastObject): unknown {
  if (body === undefined) return { status, text };
  switch (body.kind) {
    case 'Status':
      return { status, ...summarizeStatus(body, last) };
    case 'Table':
      return { status, ...summarizeTable(body) };
    case 'WidgetList':
      return { status, kind: body.kind, items: body.items?.length };
    case 'CustomResourceDefinition':
      return { status, ...summarizeDefinition(body) };
    default: {
      const { metadata, spec, status: objectStatus } = body;
      const { generation, labels } = metadata ?? {};
      return {
        status,
        ...(generation !== undefined && { generation }),
        ...(labels && { labels }),
        spec,
        ...(objectStatus && { objectStatus }),
      };
    }
  }
}

function summarizeStatus({ reason, message = '', details }: ApiBody, last: LastObject): object {
  const causes = details?.causes ?? [];
  return {
    ...(reason !== undefined && { reason }),
    message: message
      .replaceAll(last.uid, 'UID')
      .replace(`in record (${last.resourceVersion})`, 'in record (VERSION)'),
    ...(causes.length > 0 && { causes: sortCauses(causes) }),
  };
}

/** Without the age, which is the last cell. */
function summarizeTable({ columnDefinitions = [], rows = [] }: ApiBody): object {
  return {
    columns: columnDefinitions.map(({ name, type, priority }) => `${name} ${type} ${priority}`),
    cells: rows.map(({ cells }) => cells.slice(0, -1)),
  };
}

function summarizeDefinition({ metadata, spec, status }: ApiBody): object {
  // A real API server adds the condition Terminating to the response already.
  const conditions = (status?.conditions ?? []).filter((one) => one['type'] !== 'Terminating');
  return {
    generation: metadata?.generation,
    names: spec?.names,
    storedVersions: status?.storedVersions,
    conditions: conditions.map(({ type, status: value, reason }) => `${type} ${value} ${reason}`),
  };
}
