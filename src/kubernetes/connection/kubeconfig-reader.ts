// SPDX-License-Identifier: Apache-2.0
// What is used of the official client, so that the bundle contains only this part of it.
export { KubeConfig } from '@kubernetes/client-node';
