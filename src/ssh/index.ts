// SPDX-License-Identifier: Apache-2.0
// Implements the RemoteShell port over SSH. Owns connections, logins and host keys. Must not know what the commands are
// for. Loads a large library: import it when a connection is needed. Start reading in ssh-shell.ts.
import type { RemoteShell } from '../ports/remote-shell.ts';
import { SshShell, type SshShellOptions } from './ssh-shell.ts';

export { chooseLogin, type SshLogin } from './connect.ts';
export { type HostKeyTrust, trustKnownHosts, type UnknownHostKey } from './host-key.ts';
export type { SshShellOptions } from './ssh-shell.ts';

/** Connects with the first command. */
export function openSshShell(options: SshShellOptions): RemoteShell {
  return new SshShell(options);
}
