// SPDX-License-Identifier: Apache-2.0

export function serverProblem(server: string): string | undefined {
  if (!isUrl(server)) return `server '${server}' is not a URL`;
  const { protocol, username, password } = new URL(server);
  if (protocol !== 'https:') return `server '${server}' is not an https URL`;
  return username + password === '' ? undefined : 'the URL of the server contains a password';
}

export function isUrl(text: string): boolean {
  return /^https?:\/\/[\x21-\x7e]+$/.test(text) && URL.canParse(text);
}

/** `host:port`, as kubeadm wants it. */
export function endpointOf(server: string): string {
  const { hostname, port } = new URL(server);
  return `${hostname}:${port === '' ? '443' : port}`;
}

export function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^\[|\]$/g, '');
}

/** Any path: that something answers is all we ask. */
export function probeOf(server: string): string {
  return new URL('/ping', server).href;
}
