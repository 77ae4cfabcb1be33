// SPDX-License-Identifier: Apache-2.0
// For judges outside of this folder: the folder's own YAML is no part of what it offers to others.
export { yamlText } from '../yaml-text.ts';
