// SPDX-License-Identifier: Apache-2.0
// A guest behind a proxy: one file of variables, which the join and every service of the recipe reads.
import type { GuestFile } from './guest-file.ts';
import { PROXY_FILE, unitPath } from './paths.ts';
import { isUrl } from './recipes/server-url.ts';
import type { ProxyInput } from './seed-input.ts';
import { lines } from './shell-text.ts';

const NEVER = ['localhost', '127.0.0.0/8', '::1'];

export function proxyProblem(proxy: ProxyInput | undefined): string | undefined {
  if (proxy === undefined) return undefined;
  // Not repeated: it may contain a password.
  const isWrong = [proxy.http, proxy.https].some(
    (url) => url !== undefined && (!isUrl(url) || /["\\$`]/.test(url)),
  );
  if (isWrong) return 'the URL of the proxy is not a URL';
  const none = proxy.none.find((each) => !/^[A-Za-z0-9.*:/[\]_-]+$/.test(each));
  return none === undefined ? undefined : `'${none}' is no host, domain or network without proxy`;
}

export interface ProxyPlan {
  readonly proxy: ProxyInput;
  /** Hosts that the guest reaches without it anyway: the server that it joins. */
  readonly direct: readonly string[];
  readonly services: readonly string[];
}

/** 0600: a proxy's URL may contain a password. */
export function proxyFiles({ proxy, direct, services }: ProxyPlan): GuestFile[] {
  const none = [...new Set([...NEVER, ...direct, ...proxy.none])].join(',');
  const variables = { HTTP_PROXY: proxy.http, HTTPS_PROXY: proxy.https, NO_PROXY: none };
  const settings = Object.entries(variables).flatMap(([name, value]) =>
    // Programs disagree about the case.
    value === undefined ? [] : [`${name}="${value}"`, `${name.toLowerCase()}="${value}"`],
  );
  const dropIn = lines('[Service]', `EnvironmentFile=-${PROXY_FILE}`);
  return [
    { path: PROXY_FILE, content: lines(...settings), mode: '0600' },
    ...services.map((service) => ({
      path: `${unitPath(`${service}.service`)}.d/50-pvescaler-proxy.conf`,
      content: dropIn,
      mode: '0644',
    })),
  ];
}

/** cloud-init's own setting, since packages come before everything that reads the file. */
export function aptProxy(proxy: ProxyInput | undefined) {
  if (proxy?.http === undefined && proxy?.https === undefined) return {};
  return {
    apt: {
      ...(proxy.http !== undefined && { http_proxy: proxy.http }),
      ...(proxy.https !== undefined && { https_proxy: proxy.https }),
    },
  };
}
