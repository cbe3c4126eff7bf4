/**
 * A treegrid that draws only the rows in view, for a hundred thousand as for ten.
 *
 * Rows have one height and are moved by `transform`; scrolling refills the ones that left the view.
 * What a keyboard and a screen reader need of it:
 *
 * - The order of the rows in the document is their order on the screen: a row that comes back into
 *   view is inserted where it belongs.
 * - The focused row is never refilled. Scrolled away, it stays in the document at its own place, so
 *   focus is not lost, and arrows go on from it.
 * - Exactly one row can be reached by Tab, the current one. While it is not in the document, the grid
 *   itself takes the focus and brings it back.
 */

import { h } from "./dom.mjs";

const ROW = 28; // pixels, as in the style sheet
const MARGIN = 4; // rows above and below the view
// Chromium silently clamps heights at 33.5 million pixels, others earlier.
const MOST_ROWS = Math.floor(16e6 / ROW);

/**
 * @typedef {{
 *   count: number,
 *   fill: (cells: HTMLElement[], row: HTMLElement, at: number) => void,
 *   level?: (at: number) => number,
 *   isOpen?: (at: number) => boolean | undefined,
 *   toggle?: (at: number, open: boolean) => void,
 *   isChosen?: (at: number) => boolean,
 *   choose?: (at: number) => void,
 * }} View
 *   What the grid shows. `fill` sets the text of a row's cells; `isOpen` is undefined for a row that
 *   has nothing below it.
 *
 * @typedef {{ title: string, className: string, sort?: string }} Column
 * @typedef {HTMLDivElement & { at: number, cells: HTMLElement[] }} Row
 */

export class Grid {
  /** The element to put into the page. */
  element;
  #header;
  #body;
  #columns;
  /** @type {View} */
  #view = { count: 0, fill() {} };
  /** @type {Row[]} */
  #pool = [];
  #current = 0;
  #count = 0;
  #planned = 0;
  #observer;

  /**
   * @param {string} label
   * @param {Column[]} columns
   * @param {(key: string) => void} [onSort]
   */
  constructor(label, columns, onSort) {
    this.#columns = columns;
    const titles = columns.map(({ title, className, sort }, at) =>
      h(
        "div",
        { role: "columnheader", "aria-colindex": at + 1, class: `bpk-cell ${className}` },
        sort && onSort
          ? h("button", { type: "button", class: "bpk-sort", "data-key": sort, onclick: () => onSort(sort) }, title)
          : h("span", { class: "bpk-sort" }, title),
      ),
    );
    this.#header = h("div", { role: "row", "aria-rowindex": 1, class: "bpk-row bpk-titles" }, ...titles);
    this.#body = h("div", { role: "rowgroup", class: "bpk-rows" });
    this.element = h(
      "div",
      { role: "treegrid", "aria-label": label, "aria-colcount": columns.length, tabindex: 0, class: "bpk-grid" },
      h("div", { role: "rowgroup", class: "bpk-titlegroup" }, this.#header),
      this.#body,
    );
    this.element.addEventListener("scroll", () => this.#plan(), { passive: true });
    this.element.addEventListener("keydown", (event) => this.#key(event));
    this.element.addEventListener("focus", () => this.goTo(this.#current));
    this.#body.addEventListener("click", (event) => this.#click(event));
    this.#observer = new ResizeObserver(() => this.#plan());
    this.#observer.observe(this.element);
  }

  /** Rows that are shown, at most as many as a browser can lay out. */
  get count() {
    return this.#count;
  }

  /** How many rows there would be beyond those. */
  get beyond() {
    return this.#view.count - this.#count;
  }

  /**
   * Show something else, from its top.
   *
   * @param {View} view
   */
  show(view) {
    this.#current = 0;
    this.element.scrollTop = 0;
    this.change(view);
  }

  /**
   * Show something else and stay where one is.
   *
   * @param {View} view
   */
  change(view) {
    this.#view = view;
    this.#count = Math.min(view.count, MOST_ROWS);
    this.#current = Math.max(0, Math.min(this.#current, this.#count - 1));
    this.#body.style.height = `${this.#count * ROW}px`;
    this.element.setAttribute("aria-rowcount", String(this.#count + 1));
    for (const row of this.#pool) if (row.at >= this.#count) this.#retire(row);
    this.#draw(true);
  }

  /** Fill every row anew. */
  refresh() {
    this.#draw(true);
  }

  /**
   * Say by which column the rows are sorted.
   *
   * @param {string | null} key
   * @param {boolean} descending
   */
  setSort(key, descending) {
    this.#columns.forEach(({ sort }, at) => {
      const cell = this.#header.children[at];
      if (sort && sort === key) cell.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
  }

  /**
   * Allow or forbid sorting.
   *
   * @param {boolean} sortable
   */
  setSortable(sortable) {
    for (const button of this.#header.querySelectorAll("button")) button.disabled = !sortable;
  }

  /**
   * Make a row the current one, in view.
   *
   * @param {number} at
   * @param {{ focus?: boolean }} [options]
   */
  goTo(at, { focus = true } = {}) {
    if (!this.#count) return;
    this.#current = Math.max(0, Math.min(this.#count - 1, at));
    const top = this.#current * ROW;
    const height = this.element.clientHeight - this.#header.offsetHeight;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + ROW > this.element.scrollTop + height) this.element.scrollTop = top + ROW - height;
    this.#draw(false);
    if (focus) this.#pool.find((row) => row.at === this.#current)?.focus({ preventScroll: true });
  }

  destroy() {
    cancelAnimationFrame(this.#planned);
    this.#observer.disconnect();
  }

  #plan() {
    this.#planned ||= requestAnimationFrame(() => {
      this.#planned = 0;
      this.#draw(false);
    });
  }

  /** @param {boolean} all Also fill the rows that are in place already. */
  #draw(all) {
    const { scrollTop, clientHeight } = this.element;
    const first = Math.max(0, Math.floor(scrollTop / ROW) - MARGIN);
    const end = Math.min(this.#count, Math.ceil((scrollTop + clientHeight) / ROW) + MARGIN);
    const active = this.element.ownerDocument.activeElement;
    const focused = this.#pool.find((row) => row === active && row.at >= 0);
    /** @type {Map<number, Row>} */
    const inPlace = new Map();
    /** @type {Row[]} */
    const free = [];
    for (const row of this.#pool) {
      if ((row.at >= first && row.at < end) || row === focused) inPlace.set(row.at, row);
      else free.push(row);
    }
    /** @type {ChildNode | null} */
    let next = this.#body.firstChild;
    /** @param {number} at */
    const place = (at) => {
      let row = inPlace.get(at);
      if (!row) {
        row = free.pop() ?? this.#make();
        this.#fill(row, at);
        // Walk past rows that are about to be used elsewhere or put away.
        while (next && !inPlace.has(/** @type {Row} */ (next).at)) next = next.nextSibling;
        if (row === next) next = next.nextSibling;
        else this.#body.insertBefore(row, next);
        inPlace.set(at, row);
      } else {
        if (all) this.#fill(row, at);
        while (next && next !== row) next = next.nextSibling;
        next = row.nextSibling;
      }
      const tabIndex = at === this.#current ? 0 : -1;
      if (row.tabIndex !== tabIndex) row.tabIndex = tabIndex;
    };
    if (focused && focused.at < first) place(focused.at);
    for (let at = first; at < end; at += 1) place(at);
    if (focused && focused.at >= end) place(focused.at);
    for (const row of free) this.#retire(row);
    const reachable = this.#count === 0 || !inPlace.has(this.#current);
    const tabIndex = reachable ? 0 : -1;
    if (this.element.tabIndex !== tabIndex) this.element.tabIndex = tabIndex;
  }

  /** @returns {Row} */
  #make() {
    const cells = this.#columns.map(({ className }, at) =>
      h("div", { role: "gridcell", "aria-colindex": at + 1, class: `bpk-cell ${className}` }, ""),
    );
    for (const cell of cells) cell.append("");
    const row = /** @type {Row} */ (h("div", { role: "row", class: "bpk-row", tabindex: -1 }, ...cells));
    row.at = -1;
    row.cells = cells;
    this.#pool.push(row);
    return row;
  }

  /** @param {Row} row @param {number} at */
  #fill(row, at) {
    const view = this.#view;
    if (row.at !== at) {
      row.at = at;
      row.hidden = false;
      row.style.transform = `translateY(${at * ROW}px)`;
      row.setAttribute("aria-rowindex", String(at + 2));
    }
    const level = String(view.level?.(at) ?? 1);
    if (row.getAttribute("aria-level") !== level) {
      row.setAttribute("aria-level", level);
      row.style.setProperty("--bpk-level", level);
    }
    const open = view.isOpen?.(at);
    if (open === undefined) row.removeAttribute("aria-expanded");
    else row.setAttribute("aria-expanded", String(open));
    if (view.choose) row.setAttribute("aria-selected", String(view.isChosen?.(at) ?? false));
    view.fill(row.cells, row, at);
  }

  /** @param {Row} row */
  #retire(row) {
    row.at = -1;
    row.hidden = true;
    row.tabIndex = -1;
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const row = /** @type {Row | null} */ (/** @type {Element} */ (event.target).closest(".bpk-row"));
    if (!row || row.at < 0) return;
    const { at } = row;
    this.goTo(at);
    this.#activate(at);
  }

  /** @param {number} at */
  #activate(at) {
    const open = this.#view.isOpen?.(at);
    if (open === undefined) this.#view.choose?.(at);
    else this.#toggle(at, !open);
  }

  /** @param {number} at @param {boolean} open */
  #toggle(at, open) {
    this.#view.toggle?.(at, open);
    this.goTo(at);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const target = /** @type {Element} */ (event.target);
    if (target.closest(".bpk-titles") || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW) - 2);
    const at = this.#current;
    /** @type {Record<string, number>} */
    const moves = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + page,
      PageUp: at - page,
      Home: 0,
      End: this.#count - 1,
    };
    if (event.key in moves) this.goTo(moves[event.key]);
    else if (event.key === "ArrowRight") this.#right(at);
    else if (event.key === "ArrowLeft") this.#left(at);
    else if (event.key === "Enter" || event.key === " ") this.#activate(at);
    else return;
    event.preventDefault();
  }

  /** @param {number} at Open, or go to the first one below. */
  #right(at) {
    const open = this.#view.isOpen?.(at);
    if (open) this.goTo(at + 1);
    else if (open === false) this.#toggle(at, true);
  }

  /** @param {number} at Close, or go to the group above. */
  #left(at) {
    if (this.#view.isOpen?.(at)) {
      this.#toggle(at, false);
      return;
    }
    const { level } = this.#view;
    if (!level) return;
    let up = at;
    while (up > 0 && level(up) >= level(at)) up -= 1;
    this.goTo(up);
  }
}
