// SPDX-License-Identifier: Apache-2.0
// What stands in for a value that was refused, where taking it out would take more with it: a pool must not go
// for its name, nor an image for its URL. The stand-ins are such that no check finds fault with them.
import { type ConfigPath, valueAt } from '../config-path.ts';

const SUBSTITUTE_URL = 'https://refused.invalid';

/** Keys without which their mapping is none. */
const AGENT_RECIPE: Readonly<Record<string, unknown>> = { server: SUBSTITUTE_URL };
const LARGEST_SIZE: Readonly<Record<string, unknown>> = { cpu: 1, memory: '1Pi', disk: '1Pi' };

const RECIPES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  k3s: AGENT_RECIPE,
  rke2: AGENT_RECIPE,
  kubeadm: {},
  custom: { scriptFile: 'refused' },
};

/** Undefined where the value is better taken out. */
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

/** The whole, or one key of it. */
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
