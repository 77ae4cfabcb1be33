// SPDX-License-Identifier: Apache-2.0
// ProxmoxPool objects as a platform team manages them: with the real kubectl.
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { type ApiObject, type ControlPlane, waitUntil } from '../controlplane/index.ts';
import { buildKubectl } from './command-line-tools.ts';

const POOLS = '/apis/pvescaler.dev/v1alpha1/namespaces/pvescaler/proxmoxpools';
export const POOL_SIZE = { cpu: 2, memory: '2Gi', disk: '20Gi' };

export interface PoolObject extends ApiObject {
  readonly metadata: ApiObject['metadata'] & {
    readonly generation: number;
    readonly finalizers?: readonly string[];
    readonly managedFields: readonly { readonly manager: string; readonly subresource?: string }[];
  };
  readonly spec: Readonly<Record<string, unknown>>;
  readonly status?: {
    readonly replicas: number;
    readonly readyReplicas: number;
    readonly observedGeneration: number;
    readonly conditions: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason: string;
      readonly message: string;
    }[];
  };
}

export interface KubectlResult {
  readonly status: number;
  readonly out: string;
  readonly err: string;
}

export class PoolKubectl {
  readonly #plane: ControlPlane;
  readonly #program = buildKubectl();

  constructor(plane: ControlPlane) {
    this.#plane = plane;
  }

  /** Not synchronously: the simulated Proxmox runs in this process. */
  attempt(...args: readonly string[]): Promise<KubectlResult> {
    const { kubeconfig, folder } = this.#plane;
    return new Promise((resolve) => {
      execFile(
        this.#program,
        ['-n', 'pvescaler', ...args],
        { env: { ...process.env, KUBECONFIG: kubeconfig, HOME: folder } },
        (error, out, err) => resolve({ status: Number(error?.code ?? 0), out, err }),
      );
    });
  }

  /** What it prints. Throws when it fails. */
  async run(...args: readonly string[]): Promise<string> {
    const { status, out, err } = await this.attempt(...args);
    if (status !== 0) throw new Error(`${args.join(' ')}: exit ${status} ${err}`);
    return out;
  }

  /** The path of a file with the object. */
  manifest(name: string, spec: object): string {
    const path = join(this.#plane.folder, `${name}.yaml`);
    const apiVersion = 'pvescaler.dev/v1alpha1';
    writeFileSync(path, stringify({ apiVersion, kind: 'ProxmoxPool', metadata: { name }, spec }));
    return path;
  }

  apply(name: string, spec: object): Promise<string> {
    return this.run('apply', ...this.#serverSide(name, spec));
  }

  /** Fails when applying would change something. */
  diff(name: string, spec: object): Promise<string> {
    return this.run('diff', ...this.#serverSide(name, spec));
  }

  #serverSide(name: string, spec: object): readonly string[] {
    return ['--server-side', '--field-manager=gitops', '-f', this.manifest(name, spec)];
  }

  read(name: string): Promise<PoolObject> {
    return this.#plane.api.callOrThrow<PoolObject>('GET', `${POOLS}/${name}`);
  }

  /** Who has written fields of the object, and by which subresource. */
  async managers(name: string): Promise<readonly string[]> {
    return (await this.read(name)).metadata.managedFields
      .map(({ manager, subresource = '' }) => `${manager} ${subresource}`.trim())
      .toSorted();
  }

  async condition(name: string, type: string): Promise<string> {
    const { status } = await this.read(name);
    const found = status?.conditions.find((one) => one.type === type);
    return `${found?.status} ${found?.reason} ${found?.message}`;
  }

  untilCondition(name: string, type: string, text: RegExp): Promise<boolean> {
    return waitUntil(`${type} of ${name} is ${String(text)}`, async () => {
      const now = await this.condition(name, type);
      if (!text.test(now)) throw new Error(now);
      return true;
    });
  }
}
