// SPDX-License-Identifier: Apache-2.0
// Substitutes for refused values, where removing the value would remove more than the value: a pool must
// not be dropped because of its name, nor an image because of its URL. No check reports a substitute.
import { type ConfigPath, valueAt } from '../config-path.ts';

const SUBSTITUTE_URL = 'https://refused.invalid';

/** The required keys of an agent recipe. */
const AGENT_RECIPE: Readonly<Record<string, unknown>> = { server: SUBSTITUTE_URL };
const LARGEST_SIZE: Readonly<Record<string, unknown>> = { cpu: 1, memory: '1Pi', disk: '1Pi' };

const RECIPES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  k3s: AGENT_RECIPE,
  rke2: AGENT_RECIPE,
  kubeadm: {},
  custom: { scriptFile: 'refused' },
};

/** Undefined when the value should be removed instead. */
export function findSubstitute(tree: unknown, path: ConfigPath): unknown {
  const [section, name, ...inner] = path;
  if (name === undefined) return undefined;
  if (section === 'pools')
    return typeof name === 'number' ? poolSubstitute(tree, name, inner) : undefined;
  return sectionSubstitute(String(section), String(name), inner);
}

function sectionSubstitute(section: string, name: string, inner: ConfigPath): unknown {
  switch (section) {
    case 'images':
      return inner.length === 0
        ? { url: SUBSTITUTE_URL, unverified: true }
        : pickPart({ url: SUBSTITUTE_URL }, inner);
    case 'templates':
      return inner.length === 0 ? { name: 'refused' } : undefined;
    case 'join':
      return pickPart(Object.hasOwn(RECIPES, name) ? RECIPES[name] : undefined, inner);
    default:
      return undefined;
  }
}

/** The whole mapping, or one key of it. */
function pickPart(
  whole: Readonly<Record<string, unknown>> | undefined,
  inner: ConfigPath,
): unknown {
  const [key, ...deeper] = inner;
  if (key === undefined) return whole === undefined ? undefined : { ...whole };
  return deeper.length === 0 ? whole?.[key] : undefined;
}

function poolSubstitute(tree: unknown, index: number, [key, ...inner]: ConfigPath): unknown {
  if (key === 'size')
    return pickPart(LARGEST_SIZE, typeof inner[0] === 'number' ? inner.slice(1) : inner);
  if (key === 'name') return `refused-${index}`;
  if (key !== 'limits' || inner.length !== 1 || inner[0] !== 'max') return undefined;
  const min = valueAt(tree, ['pools', index, key, 'min']);
  return typeof min === 'number' ? min : 0;
}
