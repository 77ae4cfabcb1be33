// SPDX-License-Identifier: Apache-2.0
// From a path in the config to the place a person has to look at: the line, the variable or the flag. Where
// the value itself is nowhere (it is missing), the nearest thing around it is.
import { type ConfigPath, pathKey, pathText } from '../config-path.ts';
import type { NodePlace } from '../document/document.ts';
import type { Finding } from '../issues/finding.ts';
import { DEFAULT_ORIGIN, type Origin, originFile } from '../overrides/origin.ts';
import { type Place, type Problem, renderPlace } from '../problem.ts';

export interface PlaceSources {
  /** Undefined when there is no file. */
  readonly file: string | undefined;
  readonly places: ReadonlyMap<string, NodePlace>;
  /** Values set from elsewhere. */
  readonly overrides: ReadonlyMap<string, Origin>;
  /** Mappings that had to be made to hold them. */
  readonly made: ReadonlyMap<string, Origin>;
  readonly overridden: readonly ConfigPath[];
}

export class Places {
  readonly #file: string;
  readonly #places: ReadonlyMap<string, NodePlace>;
  readonly #overrides: ReadonlyMap<string, Origin>;
  readonly #made: ReadonlyMap<string, Origin>;

  constructor({ file, places, overrides, made, overridden }: PlaceSources) {
    this.#file = file ?? 'config';
    this.#overrides = overrides;
    this.#made = made;
    // Lines under an overridden value are not where its problems are.
    const hidden = overridden.map(pathKey);
    this.#places = new Map(
      [...places].filter(
        ([key]) => !hidden.some((prefix) => key === prefix || key.startsWith(`${prefix}\0`)),
      ),
    );
  }

  problem(finding: Finding): Problem {
    const { path, severity, message, suggestion, atKey } = finding;
    return {
      ...this.#placeOf(path, atKey === true),
      path: pathText(path),
      severity,
      message,
      ...(suggestion !== undefined && { suggestion }),
    };
  }

  #placeOf(path: ConfigPath, atKey: boolean): Place {
    for (let length = path.length; length >= 0; length -= 1) {
      const key = pathKey(path.slice(0, length));
      const override = this.#overrides.get(key) ?? this.#made.get(key);
      if (override !== undefined) return { file: originFile(override), line: 0, col: 0 };
      const place = this.#places.get(key);
      // Around a value that is missing, the key of what it is missing in.
      const useKey = atKey || length < path.length;
      if (place !== undefined) {
        return { file: this.#file, ...(useKey ? (place.key ?? place.value) : place.value) };
      }
    }
    return { file: this.#file, line: 0, col: 0 };
  }

  /** Of a value in the effective config. */
  origin(path: ConfigPath): Origin {
    for (let length = path.length; length > 0; length -= 1) {
      const override = this.#overrides.get(pathKey(path.slice(0, length)));
      if (override !== undefined) return override;
    }
    const place = this.#places.get(pathKey(path));
    return place === undefined
      ? DEFAULT_ORIGIN
      : { kind: 'file', detail: renderPlace({ file: this.#file, ...place.value }) };
  }
}
