// SPDX-License-Identifier: Apache-2.0

export function serverProblem(server: string): string | undefined {
  if (!isUrl(server)) return `server '${server}' is not a URL`;
  const { protocol, username, password } = new URL(server);
  if (protocol !== 'https:') return `server '${server}' is not an https URL`;
  return username + password === '' ? undefined : 'the server URL must not contain a password';
}

export function isUrl(text: string): boolean {
  return /^https?:\/\/[\x21-\x7e]+$/.test(text) && URL.canParse(text);
}

/** `host:port`, the format of kubeadm. */
export function endpointOf(server: string): string {
  const { hostname, port } = new URL(server);
  return `${hostname}:${port === '' ? '443' : port}`;
}

export function hostnameOf(url: string): string {
  return new URL(url).hostname.replace(/^\[|\]$/g, '');
}

/** The path does not matter: any HTTP response means that the server is reachable. */
export function probeUrl(server: string): string {
  return new URL('/ping', server).href;
}

// Validation of join tokens. Problems never contain the token.

/** k3s and RKE2 accept any password. Characters that would break a file or a shell script are copy mistakes. */
export function tokenProblem(token: string): string | undefined {
  if (token === '') return 'the join token is empty';
  return /^[\x21-\x7e]+$/.test(token)
    ? undefined
    : 'the join token contains white space or non-ASCII characters';
}

export function bootstrapTokenProblem(token: string): string | undefined {
  return /^[a-z0-9]{6}\.[a-z0-9]{16}$/.test(token)
    ? undefined
    : "the join token must be a bootstrap token of the form 'abcdef.0123456789abcdef'";
}
