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
