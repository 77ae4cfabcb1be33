// SPDX-License-Identifier: Apache-2.0
// Reads single Secrets that the config names. It needs `get` on exactly those, and neither lists nor watches.
import type { Clock } from '../ports/clock.ts';
import { InvalidConfig, type PvescalerError, Unreachable } from '../ports/errors.ts';
import { type ApiClient, apiPath } from './api-client.ts';
import { asRecord, asString, translateStatus } from './status.ts';

export interface SecretKeyRef {
  readonly namespace: string;
  readonly name: string;
  readonly key: string;
}

/** Of `withApi`: runs `work` with a client, and closes its connections afterwards. */
type WithApi = <T>(work: (api: ApiClient) => Promise<T>) => Promise<T>;

type SecretData = Readonly<Record<string, unknown>>;

/** Each request to Proxmox needs the value. A rotated Secret is picked up after this time, as a mounted one would be. */
const MAX_AGE_MS = 30_000;

export class SecretReader {
  readonly #withApi: WithApi;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #read = new Map<string, { readonly at: number; readonly data: Promise<SecretData> }>();

  constructor(withApi: WithApi, clock: Pick<Clock, 'monotonic'>) {
    this.#withApi = withApi;
    this.#clock = clock;
  }

  async read(ref: SecretKeyRef): Promise<string> {
    const data = await this.#data(ref);
    const encoded = asString(data[ref.key]);
    if (Object.hasOwn(data, ref.key)) return Buffer.from(encoded, 'base64').toString('utf8');
    const names = Object.keys(data).toSorted();
    const others = names.length === 0 ? 'it has no keys' : `it has ${names.join(', ')}`;
    throw new InvalidConfig(
      'SECRET_UNREADABLE',
      `${describe(ref)} has no key ${ref.key}; ${others}`,
    );
  }

  /** While the API server cannot be reached, the last value is used: a mounted file would be there too. */
  async #data(ref: SecretKeyRef): Promise<SecretData> {
    const id = `${ref.namespace}/${ref.name}`;
    const last = this.#read.get(id);
    const at = this.#clock.monotonic();
    if (last !== undefined && at - last.at < MAX_AGE_MS) return last.data;
    const data = this.#withApi((api) => readData(api, ref)).catch((error: unknown) => {
      if (last !== undefined && error instanceof Unreachable) return last.data;
      this.#read.delete(id);
      throw error;
    });
    this.#read.set(id, { at, data });
    return data;
  }
}

async function readData(api: ApiClient, ref: SecretKeyRef): Promise<SecretData> {
  const { namespace, name } = ref;
  const path = apiPath('api', 'v1', 'namespaces', namespace, 'secrets', name);
  const operation = `read ${describe(ref)}`;
  const result = await api.request({ path, operation });
  if (result.ok) return asRecord(asRecord(result.value)['data']);
  const { code } = result.status;
  if (code === 404) throw missing(ref);
  if (code === 403) throw forbidden(ref, translateStatus(result.status, operation));
  throw translateStatus(result.status, operation);
}

function missing(ref: SecretKeyRef): InvalidConfig {
  const { namespace, name, key } = ref;
  return new InvalidConfig('SECRET_UNREADABLE', `${describe(ref)} does not exist`, {
    hint: `Create it: kubectl -n ${namespace} create secret generic ${name} --from-file=${key}=FILE`,
  });
}

function forbidden(ref: SecretKeyRef, cause: PvescalerError): InvalidConfig {
  const { namespace, name } = ref;
  return new InvalidConfig(
    'SECRET_UNREADABLE',
    `${describe(ref)} may not be read by this account: ${cause.message}`,
    {
      cause,
      hint: `Grant get on secrets with resourceNames [${name}] in namespace ${namespace}: see deploy/secret-ref.`,
    },
  );
}

function describe({ namespace, name }: SecretKeyRef): string {
  return `Secret ${namespace}/${name}`;
}
