// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { findConnectionSource } from './find-source.ts';

const HOME_CONFIG = '/home/me/.kube/config';
const TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount/token';

function find(
  files: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  kubeconfigPath?: string,
) {
  return findConnectionSource({
    kubeconfigPath,
    context: undefined,
    environment,
    homeFolder: '/home/me',
    pathDelimiter: ':',
    fileExists: (path) => Promise.resolve(files.includes(path)),
  });
}

describe('findConnectionSource', () => {
  it('prefers the configured file, then the service account of the pod, then KUBECONFIG, then the file in the home folder', async () => {
    const files = [HOME_CONFIG, TOKEN, '/a'];
    const pod = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBECONFIG: '/a' };
    expect(await find(files, pod, '/given')).toMatchObject({ path: '/given' });
    expect(await find(files, pod)).toEqual({ kind: 'in-cluster' });
    expect(await find(files, { KUBECONFIG: '/a' })).toMatchObject({ path: '/a' });
    expect(await find(files)).toMatchObject({ path: HOME_CONFIG });
    expect(await find(files, { KUBECONFIG: '' })).toMatchObject({ path: HOME_CONFIG });
    expect(await find([])).toBeUndefined();
  });

  it('takes the first file of KUBECONFIG that exists', async () => {
    const environment = { KUBECONFIG: '/missing::/b:/c' };
    expect(await find(['/b', '/c', HOME_CONFIG], environment)).toMatchObject({ path: '/b' });
  });

  it('names a file of KUBECONFIG although none exists, so that the connection fails with its name', async () => {
    const environment = { KUBECONFIG: '/missing:/gone' };
    expect(await find([HOME_CONFIG], environment)).toMatchObject({ path: '/missing' });
  });
});
