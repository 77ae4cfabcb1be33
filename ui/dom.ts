// SPDX-License-Identifier: Apache-2.0
// Elements without a framework. Text is always set as text, so nothing of the state can become markup.

import type { Work } from './frames.ts';

type Attributes = Readonly<Record<string, string | number | undefined>>;
type Child = Node | string;

const SVG = 'http://www.w3.org/2000/svg';

function fill<T extends Element>(
  element: T,
  attributes: Attributes,
  children: readonly Child[],
): T {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children);
  return element;
}

export function create<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Name] {
  return fill(document.createElement(name), attributes, children);
}

export function createSvg(
  name: string,
  attributes: Attributes = {},
  ...children: readonly Child[]
): SVGElement {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

export function find(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no element ${id}`);
  return element;
}

export function findInput(id: string): HTMLInputElement {
  const element = find(id);
  if (!(element instanceof HTMLInputElement)) throw new Error(`${id} is no input`);
  return element;
}

/** `color-N` of the style sheet, which has 7. */
export function setColor<T extends HTMLElement | SVGElement>(element: T, index: number): T {
  element.style.color = `var(--color-${index % 7})`;
  return element;
}

/** Changes the document only if the text differs: selections and screen readers stay undisturbed. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(element: Element, name: string, value: string): void {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

export interface Row<Item> {
  readonly element: HTMLElement;
  update(item: Item): void;
}

/**
 * The children of an element, one for each item. A child stays while its item exists, and moves only if it must, so that it
 * keeps the focus.
 */
export class KeyedList<Item> {
  readonly #parent: HTMLElement;
  readonly #keyOf: (item: Item) => string;
  readonly #createRow: (item: Item) => Row<Item>;
  readonly #rows = new Map<string, Row<Item> & { item: Item }>();

  constructor(
    parent: HTMLElement,
    keyOf: (item: Item) => string,
    createRow: (item: Item) => Row<Item>,
  ) {
    this.#parent = parent;
    this.#keyOf = keyOf;
    this.#createRow = createRow;
  }

  /** Yields after each child that it changed. */
  *show(items: readonly Item[]): Work {
    const keys = new Set(items.map(this.#keyOf));
    for (const [key, { element }] of this.#rows) {
      if (keys.has(key)) continue;
      element.remove();
      this.#rows.delete(key);
      yield;
    }
    const inOrder = this.#findInOrder(items);
    let after: Element | null = null;
    for (const item of items) {
      const { row, isChanged } = this.#rowOf(item);
      const { element } = row;
      const isMoved = !inOrder.has(element);
      if (isMoved)
        this.#parent.insertBefore(
          element,
          after === null ? this.#parent.firstElementChild : after.nextElementSibling,
        );
      after = element;
      if (isChanged || isMoved) yield;
    }
  }

  /** For a list with few children. */
  showAtOnce(items: readonly Item[]): void {
    const work = this.show(items);
    while (work.next().done !== true);
  }

  /** As many children as possible that are in the order of the items already: only the others have to move. */
  #findInOrder(items: readonly Item[]): ReadonlySet<Element> {
    const places = new Map([...this.#parent.children].map((element, place) => [element, place]));
    const elements = items.flatMap((item) => this.#rows.get(this.#keyOf(item))?.element ?? []);
    const longest = longestIncreasing(elements.map((element) => places.get(element) ?? -1));
    return new Set(longest.flatMap((index) => elements[index] ?? []));
  }

  #rowOf(item: Item): { readonly row: Row<Item>; readonly isChanged: boolean } {
    const key = this.#keyOf(item);
    const known = this.#rows.get(key);
    if (known?.item === item) return { row: known, isChanged: false };
    const row = known ?? { ...this.#createRow(item), item };
    this.#rows.set(key, row);
    row.item = item;
    row.update(item);
    return { row, isChanged: true };
  }
}

/** Indexes of a longest subsequence whose values increase. */
function longestIncreasing(values: readonly number[]): readonly number[] {
  /** For each length, the smallest value that ends a subsequence of it. */
  const ends: { readonly index: number; readonly value: number }[] = [];
  const before: (number | undefined)[] = [];
  for (const [index, value] of values.entries()) {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((ends[middle]?.value ?? value) < value) low = middle + 1;
      else high = middle;
    }
    before[index] = ends[low - 1]?.index;
    ends[low] = { index, value };
  }
  const found: number[] = [];
  for (let index = ends.at(-1)?.index; index !== undefined; index = before[index])
    found.push(index);
  return found.toReversed();
}
