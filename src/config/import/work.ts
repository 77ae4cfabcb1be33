// SPDX-License-Identifier: Apache-2.0
// One import under way: our file so far, and the remarks. Every value goes through here, so that none reaches
// the output without its origin and none that is a secret.

import type { Draft, DraftPath, DraftValue } from './ours/draft.ts';
import type { ImportNote, Severity } from './result.ts';
import type { SecretGuard } from './source/secret-guard.ts';
import type { Where } from './source/tree.ts';

export interface WorkParts {
  /** The other system, as messages name it. */
  readonly them: string;
  readonly draft: Draft;
  readonly guard: SecretGuard;
}

export class Work {
  readonly them: string;
  readonly #draft: Draft;
  readonly #guard: SecretGuard;
  readonly #notes: ImportNote[] = [];
  /** Our path to the value of theirs that it came from. */
  readonly #origins = new Map<string, Where>();

  constructor({ them, draft, guard }: WorkParts) {
    this.them = them;
    this.#draft = draft;
    this.#guard = guard;
  }

  get notes(): readonly ImportNote[] {
    return this.#notes;
  }

  note(where: Where, severity: Severity, message: string): void {
    const note: ImportNote = {
      path: this.#guard.hide(where.path),
      ...(where.at === undefined ? {} : { at: where.at }),
      severity,
      message: this.#guard.hide(message),
    };
    this.#notes.push(note);
  }

  /** Takes a value over. */
  carry(path: DraftPath, value: DraftValue, where: Where): void {
    this.#put(path, value, { where, remark: this.#describe(where) });
  }

  /** Writes down what the other system does when its key is absent. */
  carryDefault(path: DraftPath, value: DraftValue, where: Where): void {
    const remark = `${where.path} is not given: default of ${this.them}`;
    this.#put(path, value, { where, remark });
  }

  /** Something the other system does always, without a key. */
  carryFixed(path: DraftPath, value: DraftValue, what: string): void {
    this.#put(path, value, { where: { path: what }, remark: `${this.them}: ${what}` });
  }

  /** What our file is about and theirs says nothing of. */
  carryOwn(path: DraftPath, value: DraftValue, remark: string): void {
    this.#put(path, value, { where: { path: '' }, remark });
  }

  /** A value that keeps the file valid until somebody puts the real one there. */
  placeholder(path: DraftPath, value: DraftValue, about: { where: Where; message: string }): void {
    const remark = `REPLACE THIS: ${about.message}`;
    this.#put(path, value, { where: about.where, remark });
    this.note(about.where, 'needs-you', `${formatPath(path)} is a placeholder: ${about.message}`);
  }

  /** A secret stays where it is; our file names the file it has to be put into. */
  secretFile(path: DraftPath, file: string, where: Where): void {
    this.#put(path, file, { where, remark: `put ${where.path} into this file` });
    const message = `a secret is not copied: put it into ${file} (readable by pvescaler only)`;
    this.note(where, 'needs-you', message);
  }

  /** Where the value came from that stands at a path of our file, or around it. */
  originOf(path: DraftPath): Where | undefined {
    for (let length = path.length; length > 0; length -= 1) {
      const origin = this.#origins.get(JSON.stringify(path.slice(0, length)));
      if (origin !== undefined) return origin;
    }
    return undefined;
  }

  #put(path: DraftPath, value: DraftValue, about: { where: Where; remark: string }): void {
    const texts = [...path.map(String), ...textsOf(value)];
    if (texts.some((text) => this.#guard.covers(text))) {
      this.note(about.where, 'needs-you', EXPOSED);
      return;
    }
    this.#origins.set(JSON.stringify(path), about.where);
    this.#draft.set(path, value, this.#guard.hide(about.remark));
  }

  #describe(where: Where): string {
    return where.at === undefined ? where.path : `${where.path}, line ${where.at.line}`;
  }
}

const EXPOSED = 'contains what looks like a secret of this file, and was left out';

function textsOf(value: DraftValue): readonly string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, child]: [string, DraftValue]) => [
    key,
    ...textsOf(child),
  ]);
}

export function formatPath(path: DraftPath): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`;
    return text === '' ? key : `${text}.${key}`;
  }, '');
}
