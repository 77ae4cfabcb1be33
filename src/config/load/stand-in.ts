// SPDX-License-Identifier: Apache-2.0
// What stands in for a value that was refused, where taking it out would take more with it: a pool must not go
// for its name, nor an image for its URL. The stand-ins are such that no check finds fault with them.
import { type ConfigPath, valueAt } from '../config-path.ts';

const ANY_URL = 'https://refused.invalid';

/** Keys without which their mapping is none. */
const AGENT: Readonly<Record<string, unknown>> = { server: ANY_URL };
const SIZE: Readonly<Record<string, unknown>> = { cpu: 1, memory: '1Pi', disk: '1Pi' };

const RECIPES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  k3s: AGENT,
  rke2: AGENT,
  kubeadm: {},
  custom: { scriptFile: 'refused' },
};

/** Undefined where the value is better taken out. */
export function standIn(tree: unknown, path: ConfigPath): unknown {
  const [section, name, ...inner] = path;
  if (name === undefined) return undefined;
  if (section === 'pools') return typeof name === 'number' ? inPool(tree, name, inner) : undefined;
  return inSection(String(section), String(name), inner);
}

function inSection(section: string, name: string, inner: ConfigPath): unknown {
  switch (section) {
    case 'images':
      return inner.length === 0
        ? { url: ANY_URL, unverified: true }
        : part({ url: ANY_URL }, inner);
    case 'templates':
      return inner.length === 0 ? { name: 'refused' } : undefined;
    case 'join':
      return part(Object.hasOwn(RECIPES, name) ? RECIPES[name] : undefined, inner);
    default:
      return undefined;
  }
}

/** The whole, or one key of it. */
function part(whole: Readonly<Record<string, unknown>> | undefined, inner: ConfigPath): unknown {
  const [key, ...deeper] = inner;
  if (key === undefined) return whole === undefined ? undefined : { ...whole };
  return deeper.length === 0 ? whole?.[key] : undefined;
}

function inPool(tree: unknown, index: number, [key, ...inner]: ConfigPath): unknown {
  if (key === 'size') return part(SIZE, typeof inner[0] === 'number' ? inner.slice(1) : inner);
  if (key === 'name') return `refused-${index}`;
  if (key !== 'limits' || inner.length !== 1 || inner[0] !== 'max') return undefined;
  const min = valueAt(tree, ['pools', index, key, 'min']);
  return typeof min === 'number' ? min : 0;
}
