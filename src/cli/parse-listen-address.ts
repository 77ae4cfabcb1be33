// SPDX-License-Identifier: Apache-2.0
import { InvalidArgumentError } from 'commander';

const MAX_PORT = 65_535;

/** Checks the value of an option that takes an address to listen on. */
export function parseListenAddress(text: string): string {
  const port = /^.+:(\d+)$/.exec(text)?.[1];
  if (port !== undefined && Number(port) <= MAX_PORT) return text;
  throw new InvalidArgumentError('It is not host:port, as in 127.0.0.1:0');
}
