// SPDX-License-Identifier: Apache-2.0
// Refuses what only an attack sends: a page of another site that reaches this server through a name of its own (DNS
// rebinding), or that sends requests from the user's browser.
import { createHash, timingSafeEqual } from 'node:crypto';
import { isIP } from 'node:net';
import type { HonoRequest, MiddlewareHandler } from 'hono';

const SECURITY_HEADERS: Record<string, string> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
};

/** Only addresses, `localhost` and the given names may be in the Host header; an Origin must be the same host. */
export function guardRequests(hostNames: readonly string[]): MiddlewareHandler {
  const names = new Set(hostNames.filter((name) => isIP(name) === 0));
  return async (context, next) => {
    const host = context.req.header('host') ?? '';
    const name = hostNameOf(host);
    const isKnown = isIP(name) !== 0 || name === 'localhost' || hostNames.includes(name);
    const origin = context.req.header('origin');
    if (!isKnown) {
      const error = `the host name ${name} is not allowed; add it to http.dashboardHosts`;
      return context.json({ error }, 403, SECURITY_HEADERS);
    }
    const isFromElsewhere = context.req.header('sec-fetch-site') === 'cross-site';
    if (!isSameOrigin(host, names, origin) || (isFromElsewhere && !isOpened(context.req))) {
      return context.json(
        { error: 'requests from other sites are refused' },
        403,
        SECURITY_HEADERS,
      );
    }
    await next();
    for (const [header, value] of Object.entries(SECURITY_HEADERS)) context.header(header, value);
    return undefined;
  };
}

/** A proxy may set another Host than the name that the browser uses, which is then among the `names`. */
function isSameOrigin(host: string, names: ReadonlySet<string>, origin: string | undefined) {
  const from = origin?.replace(/^https?:\/\//, '');
  return from === undefined || from === host || names.has(hostNameOf(from));
}

/** A person follows a link, or comes back from the login of a proxy. The other site cannot read what is shown. */
function isOpened(request: HonoRequest): boolean {
  const [mode, target] = [request.header('sec-fetch-mode'), request.header('sec-fetch-dest')];
  return request.method === 'GET' && mode === 'navigate' && target === 'document';
}

/** Without the port; without the brackets of an IPv6 address. */
function hostNameOf(host: string): string {
  const name = /^\[(.+)\](?::\d+)?$/.exec(host)?.[1] ?? host.replace(/:\d+$/, '');
  return name.toLowerCase();
}

/**
 * Requires `Authorization: Bearer TOKEN`. Without a token every action is refused. The answer does not say why it cannot be
 * read: the name of the file may be a pasted token.
 */
export function requireToken(readToken: () => Promise<string | undefined>): MiddlewareHandler {
  return async (context, next) => {
    const token = await readToken().catch(() => undefined);
    if (token === undefined || token === '') {
      const error =
        'actions are disabled: http.dashboardTokenFile is not set, empty or cannot be read; pvescaler doctor says more';
      return context.json({ error }, 403);
    }
    const given = /^Bearer (.+)$/.exec(context.req.header('authorization') ?? '')?.[1] ?? '';
    if (!isEqual(given, token)) {
      return context.json({ error: 'the token is wrong; it is in http.dashboardTokenFile' }, 401);
    }
    await next();
    return undefined;
  };
}

/** In a time that does not depend on how much of the token is right. */
function isEqual(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}
