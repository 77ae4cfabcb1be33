// SPDX-License-Identifier: Apache-2.0
// One import in progress: the config file so far, and the notes. Every value is written through this class, so that
// none reaches the output without its origin, and no secret reaches the output at all.

import { type ConfigPath, configPathKey, formatConfigPath } from '../config-path.ts';
import type { Draft, DraftValue } from './output/draft.ts';
import type { ImportNote, NoteSeverity } from './result.ts';
import type { SecretRedactor } from './source/secret-redactor.ts';
import type { SourceRef } from './source/tree.ts';

export interface ImportWriterInput {
  /** Name of the source system in messages. */
  readonly sourceName: string;
  readonly draft: Draft;
  readonly redactor: SecretRedactor;
}

export class ImportWriter {
  readonly sourceName: string;
  readonly #draft: Draft;
  readonly #guard: SecretRedactor;
  readonly #notes: ImportNote[] = [];
  /** Source of each value, by the key of its path. */
  readonly #origins = new Map<string, SourceRef>();

  constructor({ sourceName, draft, redactor }: ImportWriterInput) {
    this.sourceName = sourceName;
    this.#draft = draft;
    this.#guard = redactor;
  }

  get notes(): readonly ImportNote[] {
    return this.#notes;
  }

  note(where: SourceRef, severity: NoteSeverity, message: string): void {
    const note: ImportNote = {
      path: this.#guard.redact(where.path),
      ...(where.at === undefined ? {} : { at: where.at }),
      severity,
      message: this.#guard.redact(message),
    };
    this.#notes.push(note);
  }

  /** Sets a value of the source file. */
  set(path: ConfigPath, value: DraftValue, where: SourceRef): void {
    this.#write(path, value, { where, comment: this.#describeOrigin(where) });
  }

  /** Sets the default of the source system for a key that is absent. */
  setSourceDefault(path: ConfigPath, value: DraftValue, where: SourceRef): void {
    const comment = `${where.path} is not set: default of ${this.sourceName}`;
    this.#write(path, value, { where, comment });
  }

  /** Sets a behavior of the source system that has no key. */
  setFixedBehavior(path: ConfigPath, value: DraftValue, what: string): void {
    this.#write(path, value, { where: { path: what }, comment: `${this.sourceName}: ${what}` });
  }

  /** Sets a value that the source system does not have. */
  setOwn(path: ConfigPath, value: DraftValue, comment: string): void {
    this.#write(path, value, { where: { path: '' }, comment });
  }

  /** Sets a value that keeps the file valid until the user replaces it. */
  setPlaceholder(
    path: ConfigPath,
    value: DraftValue,
    details: { where: SourceRef; message: string },
  ): void {
    const comment = `REPLACE THIS: ${details.message}`;
    this.#write(path, value, { where: details.where, comment });
    this.note(
      details.where,
      'action-required',
      `${formatConfigPath(path)} is a placeholder: ${details.message}`,
    );
  }

  /** Refers to a file into which the user must put the secret. The secret is not copied. */
  setSecretFile(path: ConfigPath, file: string, where: SourceRef): void {
    this.#write(path, file, { where, comment: `put ${where.path} into this file` });
    const message = `secrets are not copied; put it into ${file} (readable only by pvescaler)`;
    this.note(where, 'action-required', message);
  }

  /** Source of the value at a path, or of the value that contains it. */
  findOrigin(path: ConfigPath): SourceRef | undefined {
    for (let length = path.length; length > 0; length -= 1) {
      const origin = this.#origins.get(configPathKey(path.slice(0, length)));
      if (origin !== undefined) return origin;
    }
    return undefined;
  }

  #write(
    path: ConfigPath,
    value: DraftValue,
    details: { where: SourceRef; comment: string },
  ): void {
    const texts = [...path.map(String), ...collectTexts(value)];
    if (texts.some((text) => this.#guard.containsSecret(text))) {
      this.note(details.where, 'action-required', SECRET_FOUND);
      return;
    }
    this.#origins.set(configPathKey(path), details.where);
    this.#draft.set(path, value, this.#guard.redact(details.comment));
  }

  #describeOrigin(where: SourceRef): string {
    return where.at === undefined ? where.path : `${where.path}, line ${where.at.line}`;
  }
}

const SECRET_FOUND = 'may contain a secret of the source file and was not imported';

function collectTexts(value: DraftValue): readonly string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, child]: [string, DraftValue]) => [
    key,
    ...collectTexts(child),
  ]);
}
