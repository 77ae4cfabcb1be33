// SPDX-License-Identifier: Apache-2.0
import type { GuestFile } from '../guest-types.ts';

export interface FileTreeState {
  readonly files: Readonly<Record<string, GuestFile>>;
  readonly directories: readonly string[];
}

export interface WriteOptions {
  readonly mode?: string;
  /** Mode of a file that does not exist yet. */
  readonly newMode?: string;
  readonly owner?: string;
  readonly append?: boolean;
}

/** Directories that every Linux image contains. */
const BASE_DIRECTORIES = [
  '/ /bin /boot /dev /etc /etc/apt /etc/apt/sources.list.d /etc/cloud /etc/cloud/cloud.cfg.d /etc/default',
  '/etc/modules-load.d /etc/profile.d /etc/ssh /etc/sudoers.d /etc/sysctl.d /etc/systemd /etc/systemd/system',
  '/home /lib /media /mnt /opt /proc /root /run /sbin /srv /sys /tmp /usr /usr/bin /usr/lib',
  '/usr/lib/systemd/system /usr/local /usr/local/bin /usr/local/lib /usr/local/sbin /usr/sbin /usr/share',
  '/usr/share/keyrings /var /var/lib /var/lib/cloud /var/log /var/tmp',
].flatMap((line) => line.split(' '));

const NO_BYTES = new Uint8Array();

/** Emptied by each boot. */
const VOLATILE_PREFIXES = ['/run/', '/tmp/', '/dev/', '/proc/'];

/** The file tree of the guest. Relative paths start at `/`; symbolic links are not supported. */
export class GuestFiles {
  readonly #files = new Map<string, GuestFile>();
  readonly #directories = new Set<string>(BASE_DIRECTORIES);

  constructor(state?: FileTreeState) {
    for (const [path, file] of Object.entries(state?.files ?? {})) this.#files.set(path, file);
    for (const path of state?.directories ?? []) this.#directories.add(path);
  }

  get(path: string): GuestFile | undefined {
    return this.#files.get(absolutePath(path));
  }

  /** The content as text; undefined when the file does not exist. */
  read(path: string): string | undefined {
    const file = this.get(path);
    return file === undefined ? undefined : new TextDecoder().decode(decodeFile(file));
  }

  bytes(path: string): Uint8Array | undefined {
    const file = this.get(path);
    return file === undefined ? undefined : decodeFile(file);
  }

  write(path: string, content: string | Uint8Array, options: WriteOptions = {}): void {
    const at = absolutePath(path);
    const old = this.#files.get(at);
    const added = typeof content === 'string' ? new TextEncoder().encode(content) : content;
    const kept = options.append === true && old !== undefined ? decodeFile(old) : NO_BYTES;
    const { mode, owner } = old ?? { mode: options.newMode ?? '0644', owner: 'root:root' };
    this.#files.set(at, {
      ...encodeContent(concatBytes(kept, added)),
      mode: options.mode ?? mode,
      owner: options.owner ?? owner,
    });
  }

  chmod(path: string, mode: string): boolean {
    return this.#change(path, { mode });
  }

  chown(path: string, owner: string): boolean {
    return this.#change(path, { owner });
  }

  makeDirectory(path: string): void {
    for (let at = absolutePath(path); at !== '/'; at = parentPath(at)) this.#directories.add(at);
  }

  isDirectory(path: string): boolean {
    return this.#directories.has(absolutePath(path));
  }

  exists(path: string): boolean {
    return this.#files.has(absolutePath(path)) || this.isDirectory(path);
  }

  isExecutable(path: string): boolean {
    const file = this.get(path);
    return file !== undefined && (Number.parseInt(file.mode, 8) & 0o111) !== 0;
  }

  /** Removes the file, or the directory with its content. */
  remove(path: string): void {
    const at = absolutePath(path);
    const inside = `${at === '/' ? '' : at}/`;
    for (const each of this.#files.keys()) {
      if (each === at || each.startsWith(inside)) this.#files.delete(each);
    }
    for (const each of this.#directories) {
      if (each === at || each.startsWith(inside)) this.#directories.delete(each);
    }
  }

  /** Files and directories, sorted, for globs and listings. */
  paths(): string[] {
    return [...new Set([...this.#files.keys(), ...this.#directories])].sort();
  }

  clearVolatile(): void {
    for (const path of this.paths()) {
      const volatile = VOLATILE_PREFIXES.some((prefix) => path.startsWith(prefix));
      if (volatile) this.remove(path);
    }
  }

  toState(): FileTreeState {
    const sorted = [...this.#files].sort(([a], [b]) => (a < b ? -1 : 1));
    return { files: Object.fromEntries(sorted), directories: [...this.#directories].sort() };
  }

  #change(path: string, change: Partial<GuestFile>): boolean {
    const file = this.get(path);
    if (file !== undefined) this.#files.set(absolutePath(path), { ...file, ...change });
    return this.exists(path);
  }
}

export function absolutePath(path: string): string {
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  return `/${parts.join('/')}`;
}

export function parentPath(path: string): string {
  return absolutePath(`${path}/..`);
}

export function baseName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

function encodeContent(bytes: Uint8Array): Pick<GuestFile, 'content' | 'encoding'> {
  try {
    const content = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return { content, encoding: 'utf8' };
  } catch {
    return { content: Buffer.from(bytes).toString('base64'), encoding: 'base64' };
  }
}

function decodeFile(file: GuestFile): Uint8Array {
  if (file.encoding === 'utf8') return new TextEncoder().encode(file.content);
  return new Uint8Array(Buffer.from(file.content, 'base64'));
}

function concatBytes(first: Uint8Array, second: Uint8Array): Uint8Array {
  const whole = new Uint8Array(first.length + second.length);
  whole.set(first);
  whole.set(second, first.length);
  return whole;
}
