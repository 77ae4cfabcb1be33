// SPDX-License-Identifier: Apache-2.0
// The `pveum` commands that the guide uses: each becomes the API call that the real command makes, as root.
import type { ProxmoxSim } from '../../src/sim/proxmox/index.ts';

type Form = Readonly<Record<string, string>>;
type Call = readonly [method: string, path: string, form: Form];

export class Pveum {
  readonly #sim: ProxmoxSim;
  #session: Form | undefined;

  constructor(sim: ProxmoxSim) {
    this.#sim = sim;
  }

  /** Returns the data of the API response; for a new token, the token and its secret. */
  async run(words: readonly string[]): Promise<unknown> {
    this.#session ??= await this.#login();
    return this.#call(parseCommand(words), this.#session);
  }

  async read(path: string): Promise<unknown> {
    this.#session ??= await this.#login();
    return this.#call(['GET', path, {}], this.#session);
  }

  async #login(): Promise<Form> {
    const form = { username: 'root@pam', password: 'simulated' };
    const data = await this.#call(['POST', '/access/ticket', form], {});
    const { ticket, CSRFPreventionToken: csrf } = data as Record<string, string>;
    return { cookie: `PVEAuthCookie=${ticket}`, csrfpreventiontoken: csrf ?? '' };
  }

  async #call([method, path, form]: Call, headers: Form) {
    const body = new TextEncoder().encode(new URLSearchParams(form).toString());
    const {
      status,
      reason,
      body: text,
    } = await this.#sim.handle({
      method,
      target: `/api2/json${path}`,
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        'content-length': String(body.length),
        ...headers,
      },
      body,
      host: 'pve1',
    });
    if (status !== 200) throw new Error(`${method} ${path}: ${status} ${reason} ${text}`);
    return (JSON.parse(text) as { readonly data: unknown }).data;
  }
}

const COMMANDS: Readonly<Record<string, (names: readonly string[], form: Form) => Call>> = {
  'pool add': ([poolid = ''], form) => ['POST', '/pools', { poolid, ...form }],
  'role add': ([roleid = ''], form) => ['POST', '/access/roles', { roleid, ...form }],
  'user add': ([userid = ''], form) => ['POST', '/access/users', { userid, ...form }],
  'acl modify': ([path = ''], form) => ['PUT', '/access/acl', { path, ...form }],
  'user token add': ([user = '', token = ''], form) => [
    'POST',
    `/access/users/${encodeURIComponent(user)}/token/${token}`,
    form,
  ],
  'user token remove': ([user = '', token = '']) => [
    'DELETE',
    `/access/users/${encodeURIComponent(user)}/token/${token}`,
    {},
  ],
  'user delete': ([user = '']) => ['DELETE', `/access/users/${encodeURIComponent(user)}`, {}],
};

function parseCommand(words: readonly string[]): Call {
  const { plain, form } = splitOptions(words);
  const text = plain.join(' ');
  const verb = Object.keys(COMMANDS).find((one) => text.startsWith(`pveum ${one} `));
  const command = verb === undefined ? undefined : COMMANDS[verb];
  if (verb === undefined || command === undefined)
    throw new Error(`unknown pveum command: ${words.join(' ')}`);
  return command(plain.slice(1 + verb.split(' ').length), form);
}

function splitOptions(words: readonly string[]): { readonly plain: readonly string[]; form: Form } {
  const form: Record<string, string> = {};
  const plain: string[] = [];
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] ?? '';
    if (word.startsWith('--')) form[word.slice(2)] = words[(at += 1)] ?? '';
    else plain.push(word);
  }
  return { plain, form };
}
