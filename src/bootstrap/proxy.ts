// SPDX-License-Identifier: Apache-2.0
// A guest behind a proxy: one file of environment variables for the join and all services of the recipe.
import { type GuestFile, joinLines, PROXY_FILE, unitPath } from './guest-file.ts';

import { isUrl } from './recipes/join-parameters.ts';
import type { ProxyInput } from './seed-input.ts';

const ALWAYS_DIRECT = ['localhost', '127.0.0.0/8', '::1'];

export function proxyProblem(proxy: ProxyInput | undefined): string | undefined {
  if (proxy === undefined) return undefined;
  // The message omits the URL: it may contain a password.
  const isWrong = [proxy.http, proxy.https].some(
    (url) => url !== undefined && (!isUrl(url) || /["\\$`]/.test(url)),
  );
  if (isWrong) return 'the proxy URL is not a valid URL';
  const none = proxy.none.find((each) => !/^[A-Za-z0-9.*:/[\]_-]+$/.test(each));
  return none === undefined
    ? undefined
    : `'${none}' is not a valid no-proxy entry: use a host, domain or network`;
}

export interface ProxyPlan {
  readonly proxy: ProxyInput;
  /** Hosts that must always be reached directly: the server to join. */
  readonly direct: readonly string[];
  readonly services: readonly string[];
}

/** Mode 0600: a proxy URL may contain a password. */
export function renderProxyFiles({ proxy, direct, services }: ProxyPlan): GuestFile[] {
  const none = [...new Set([...ALWAYS_DIRECT, ...direct, ...proxy.none])].join(',');
  const variables = { HTTP_PROXY: proxy.http, HTTPS_PROXY: proxy.https, NO_PROXY: none };
  const settings = Object.entries(variables).flatMap(([name, value]) =>
    // Some programs read the upper-case names, others the lower-case ones.
    value === undefined ? [] : [`${name}="${value}"`, `${name.toLowerCase()}="${value}"`],
  );
  const dropIn = joinLines('[Service]', `EnvironmentFile=-${PROXY_FILE}`);
  return [
    { path: PROXY_FILE, content: joinLines(...settings), mode: '0600' },
    ...(hasPassword(proxy) ? [aptProxyFile(proxy)] : []),
    ...services.map((service) => ({
      path: `${unitPath(`${service}.service`)}.d/50-pvescaler-proxy.conf`,
      content: dropIn,
      mode: '0644',
    })),
  ];
}

/** cloud-init's own setting, because packages are installed before the proxy file is read. */
export function renderAptProxy(proxy: ProxyInput | undefined) {
  if (proxy?.http === undefined && proxy?.https === undefined) return {};
  if (hasPassword(proxy)) return {};
  return {
    apt: {
      ...(proxy.http !== undefined && { http_proxy: proxy.http }),
      ...(proxy.https !== undefined && { https_proxy: proxy.https }),
    },
  };
}

/** Takes the place of cloud-init's setting, which everyone can read. Only root may then use apt. */
function aptProxyFile({ http, https }: ProxyInput): GuestFile {
  const lines = Object.entries({ http, https }).flatMap(([scheme, url]) =>
    url === undefined ? [] : [`Acquire::${scheme}::Proxy "${url}";`],
  );
  return { path: APT_PROXY_FILE, content: joinLines(...lines), mode: '0600' };
}

const APT_PROXY_FILE = '/etc/apt/apt.conf.d/90pvescaler-proxy';

function hasPassword({ http, https }: ProxyInput): boolean {
  return [http, https].some((url) => {
    const { username, password } = URL.parse(url ?? '') ?? {};
    return Boolean(username) || Boolean(password);
  });
}
