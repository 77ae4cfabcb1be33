// SPDX-License-Identifier: Apache-2.0
// Maps a config path to the location that a problem message points to: a line, a variable or a flag. The
// location of a missing value is that of the closest parent that exists.
import { type ConfigPath, configPathKey, formatConfigPath } from '../config-path.ts';
import type { NodeLocation } from '../document/parsed-document.ts';
import type { Finding } from '../issues/finding.ts';
import { DEFAULT_ORIGIN, formatOriginFile, type ValueOrigin } from '../overrides/origin.ts';
import { formatLocation, type Problem, type SourceLocation } from '../problem.ts';

export interface LocationIndexInput {
  /** Undefined when there is no file. */
  readonly file: string | undefined;
  readonly locations: ReadonlyMap<string, NodeLocation>;
  /** Overridden values. */
  readonly overrides: ReadonlyMap<string, ValueOrigin>;
  /** Mappings that were created to contain overridden values. */
  readonly created: ReadonlyMap<string, ValueOrigin>;
  readonly overridden: readonly ConfigPath[];
}

export class LocationIndex {
  readonly #file: string;
  readonly #places: ReadonlyMap<string, NodeLocation>;
  readonly #overrides: ReadonlyMap<string, ValueOrigin>;
  readonly #made: ReadonlyMap<string, ValueOrigin>;

  constructor({ file, locations, overrides, created, overridden }: LocationIndexInput) {
    this.#file = file ?? 'config';
    this.#overrides = overrides;
    this.#made = created;
    // Problems of an overridden value are not located at its lines in the file.
    const hidden = overridden.map(configPathKey);
    this.#places = new Map(
      [...locations].filter(
        ([key]) => !hidden.some((prefix) => key === prefix || key.startsWith(`${prefix}\0`)),
      ),
    );
  }

  toProblem(finding: Finding): Problem {
    const { path, severity, message, suggestion, atKey } = finding;
    return {
      ...this.#placeOf(path, atKey === true),
      path: formatConfigPath(path),
      severity,
      message,
      ...(suggestion !== undefined && { suggestion }),
    };
  }

  #placeOf(path: ConfigPath, atKey: boolean): SourceLocation {
    for (let length = path.length; length >= 0; length -= 1) {
      const key = configPathKey(path.slice(0, length));
      const override = this.#overrides.get(key) ?? this.#made.get(key);
      if (override !== undefined) return { file: formatOriginFile(override), line: 0, col: 0 };
      const place = this.#places.get(key);
      // For a missing value, the key of the mapping that lacks it.
      const useKey = atKey || length < path.length;
      if (place !== undefined) {
        return { file: this.#file, ...(useKey ? (place.key ?? place.value) : place.value) };
      }
    }
    return { file: this.#file, line: 0, col: 0 };
  }

  /** Origin of a value in the effective config. */
  origin(path: ConfigPath): ValueOrigin {
    for (let length = path.length; length > 0; length -= 1) {
      const override = this.#overrides.get(configPathKey(path.slice(0, length)));
      if (override !== undefined) return override;
    }
    const place = this.#places.get(configPathKey(path));
    return place === undefined
      ? DEFAULT_ORIGIN
      : { kind: 'file', detail: formatLocation({ file: this.#file, ...place.value }) };
  }
}
