// SPDX-License-Identifier: Apache-2.0
// Elements without a framework. Text is always set as text, so nothing of the state can become markup.

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

/** The children of an element, one for each item. A child stays while its item exists, so that it keeps the focus. */
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

  show(items: readonly Item[]): void {
    const keys = new Set(items.map(this.#keyOf));
    for (const [key, { element }] of this.#rows) {
      if (keys.has(key)) continue;
      element.remove();
      this.#rows.delete(key);
    }
    let after: Element | null = null;
    for (const item of items) {
      const row = this.#rowOf(item);
      const next: Element | null =
        after === null ? this.#parent.firstElementChild : after.nextElementSibling;
      if (next !== row.element) this.#parent.insertBefore(row.element, next);
      after = row.element;
    }
  }

  #rowOf(item: Item): Row<Item> {
    const key = this.#keyOf(item);
    let row = this.#rows.get(key);
    if (row === undefined) {
      row = { ...this.#createRow(item), item };
      this.#rows.set(key, row);
      row.update(item);
    } else if (row.item !== item) {
      row.item = item;
      row.update(item);
    }
    return row;
  }
}
