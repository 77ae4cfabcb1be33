// SPDX-License-Identifier: Apache-2.0
// What to tell someone who wrote "16GB", "16 Gi" or "1,5Gi" where Kubernetes wants a quantity.

/** The problem with text that stands where a quantity's suffix should. */
export function suffixProblem(text: string): string {
  if (/\s/.test(text)) return 'quantity contains white space';
  if (text.startsWith(',')) return "quantity contains ','; the decimal separator is '.'";
  if (/^[A-Za-zµ]+$/.test(text)) return `unknown suffix '${text}'${suggestion(text)}`;
  return `quantity is not a number with an optional suffix such as m, k, M, G, Ki, Mi or Gi`;
}

function suggestion(text: string): string {
  if (/^b(ytes?)?$/i.test(text)) return '; bytes are written without a suffix';
  if (/^(c|cpus?|v?cores?)$/i.test(text)) return '; cores are written without a suffix';
  const [, letter, binary] = /^([kmgtpe])(i?)b?$/i.exec(text) ?? [];
  if (letter === undefined) return '; suffixes are n u m k M G T P E and Ki Mi Gi Ti Pi Ei';
  const base2 = `'${letter.toUpperCase()}i'`;
  return binary === ''
    ? `; did you mean '${decimal(letter)}' or ${base2}?`
    : `; did you mean ${base2}?`;
}

function decimal(letter: string): string {
  const upper = letter.toUpperCase();
  return upper === 'K' ? 'k' : upper;
}
