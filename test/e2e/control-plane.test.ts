// SPDX-License-Identifier: Apache-2.0
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type ApiObject,
  type ControlPlane,
  startControlPlane,
  waitUntil,
} from './controlplane/index.ts';

interface PodObject extends ApiObject {
  readonly status: { readonly conditions?: readonly { type: string; reason?: string }[] };
}

let plane: ControlPlane;
beforeAll(async () => {
  plane = await startControlPlane();
});
afterAll(() => plane.stop());

describe('the test control plane', () => {
  it('answers and has its own cluster UID', async () => {
    const version = await plane.api.callOrThrow<{ gitVersion: string }>('GET', '/version');
    expect(version.gitVersion).toMatch(/^v1\.\d+\.\d+/);
    expect(plane.uid).toMatch(/^[0-9a-f-]{36}$/);
    expect(plane.server).not.toBe(plane.supervisor);
  });

  it('authenticates callers by certificate and by service account', async () => {
    const token = await plane.serviceAccountToken('default', 'default');
    const callers = [{ user: 'alice', groups: ['team'] }, { token }, {}];
    const names = callers.map(async (caller) => {
      const api = plane.apiAs(caller);
      const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
      const review = await api.callOrThrow<{ status: { userInfo: { username: string } } }>(
        'POST',
        path,
        {},
      );
      await api.close();
      return review.status.userInfo.username;
    });
    expect(await Promise.all(names)).toEqual([
      'alice',
      'system:serviceaccount:default:default',
      'admin',
    ]);
  });

  it('marks a pod without a node as unschedulable', async () => {
    await plane.api.create('/api/v1/namespaces/default/pods', {
      metadata: { name: 'pending' },
      spec: { containers: [{ name: 'app', image: 'example/app' }] },
    });
    const reason = await waitUntil('the scheduler has tried the pod', async () => {
      const pod = await plane.api.get<PodObject>('/api/v1/namespaces/default/pods/pending');
      return pod.status.conditions?.find(({ type }) => type === 'PodScheduled')?.reason;
    });
    expect(reason).toBe('Unschedulable');
  });

  it('keeps its objects when the API server is killed and restarted', async () => {
    await plane.killApiServer();
    await expect(plane.api.call('GET', '/readyz')).rejects.toMatchObject({ class: 'Unreachable' });
    await plane.startApiServer();
    expect((await plane.api.get('/api/v1/namespaces/default/pods/pending')).metadata.name).toBe(
      'pending',
    );
  });

  it('answers 410 to a watch from before a compaction', async () => {
    const [pod] = await plane.api.list('/api/v1/pods');
    const old = Number(pod?.metadata.resourceVersion) - 1;
    await plane.compact();
    await plane.killApiServer();
    await plane.startApiServer();
    const answer = await plane.api.call(
      'GET',
      `/api/v1/pods?watch=true&timeoutSeconds=1&resourceVersion=${old}`,
    );
    expect(answer.body).toMatchObject({ type: 'ERROR', object: { code: 410 } });
  });
});
