/** Tensors by tree or by table, filtered and sorted, with the chosen one beside them. */

import { Detail } from "./detail.mjs";
import { h, labelled } from "./dom.mjs";
import { containing, matchingGlob } from "./filter.mjs";
import { Grid } from "./grid.mjs";
import { RegexFilter, RegexTrouble } from "./regex.mjs";
import { grouped, humanBytes, plural, visible } from "./text.mjs";
import { buildTree, openSome, reveal, shownNodes, sorted } from "./tree.mjs";

/** @import { Columns } from "./columns.mjs" */
/** @import { FilterKind } from "./filter.mjs" */
/** @import { Transport } from "./protocol.mjs" */
/** @import { Source } from "./snippet.mjs" */
/** @import { SortKey, Tree } from "./tree.mjs" */

/**
 * @typedef {{ text: string, kind: FilterKind }} Filter
 * @typedef {{
 *   onChoose?: (name: string | null) => void,
 *   onFilter?: (filter: Filter) => void,
 *   makeRegexWorker?: () => Worker,
 * }} Options
 */

const OPEN_AT_FIRST = 60; // rows
const OPEN_WHEN_FILTERED = 2000;
/** @type {[string, string][]} */
const KINDS = [["text", "Contains"], ["glob", "Glob"], ["regex", "Regex"]];

export class Browser {
  element;
  #columns;
  #options;
  #grid;
  #detail;
  #regex;
  #input;
  #kind;
  #trouble;
  #count;
  #all;
  /** @type {Uint32Array} */
  #found;
  #asTree = true;
  /** @type {Tree | null} */
  #tree = null;
  /** @type {Uint32Array} */
  #shown = new Uint32Array(0);
  /** @type {SortKey} */
  #sortKey = "name";
  #descending = false;
  #chosen = -1;
  #turn = 0;

  /**
   * @param {Columns} columns
   * @param {Transport} transport
   * @param {Source} source
   * @param {(text: string) => void} say
   * @param {Options} options
   */
  constructor(columns, transport, source, say, options) {
    this.#columns = columns;
    this.#options = options;
    this.#all = Uint32Array.from({ length: columns.count }, (_, at) => at);
    this.#found = this.#all;
    this.#regex = new RegexFilter(columns.names, columns.nameBytes, options.makeRegexWorker);
    this.#detail = new Detail(columns, transport, source, say);
    this.#grid = new Grid(
      "Tensors",
      [
        { title: "Name", className: "bpk-name", sort: "name" },
        { title: "Type", className: "bpk-dtype", sort: "dtype" },
        { title: "Shape", className: "bpk-shape", sort: "shape" },
        { title: "Size", className: "bpk-size", sort: "nbytes" },
      ],
      (key) => this.#sort(/** @type {SortKey} */ (key)),
    );
    this.#input = h("input", {
      type: "search", class: "bpk-input bpk-filter", autocomplete: "off", spellcheck: "false",
      placeholder: "Filter by name", oninput: () => this.#filterChanged(),
    });
    this.#kind = h(
      "select",
      { class: "bpk-input", "aria-label": "How the filter matches", onchange: () => this.#filterChanged() },
      ...KINDS.map(([value, text]) => h("option", { value }, text)),
    );
    this.#trouble = h("p", { class: "bpk-trouble", role: "alert", hidden: true });
    this.#count = h("p", { class: "bpk-soft bpk-found", role: "status" });
    const field = labelled("Filter", this.#input, "bpk-filterfield");
    this.element = h(
      "div",
      { class: "bpk-browse" },
      h(
        "div",
        { class: "bpk-list" },
        h("div", { class: "bpk-row-of-controls bpk-toolbar" }, field, this.#kind, this.#viewSwitch()),
        this.#trouble,
        this.#grid.element,
        this.#count,
      ),
      this.#detail.element,
    );
    this.#show();
  }

  /** The name of the chosen tensor. */
  get chosen() {
    return this.#chosen < 0 ? null : this.#columns.names[this.#chosen];
  }

  /**
   * Choose a tensor, as if it had been clicked.
   *
   * @param {string | null} name
   */
  chooseName(name) {
    if (name === this.chosen) return;
    const tensor = name === null ? -1 : this.#columns.names.indexOf(name);
    this.choose(tensor);
    if (tensor >= 0) this.#bringIntoView(tensor);
  }

  /** @param {number} tensor Its index, or −1. */
  choose(tensor) {
    if (tensor === this.#chosen) return;
    this.#chosen = tensor;
    if (tensor < 0) this.#detail.clear();
    else this.#detail.show(tensor);
    this.#grid.refresh();
    this.#options.onChoose?.(this.chosen);
  }

  /** @param {number} tensor Choose it and bring it into view, past any filter. */
  chooseAndReveal(tensor) {
    if (!this.#found.includes(tensor)) this.setFilter({ text: "", kind: "text" });
    this.choose(tensor);
    this.#bringIntoView(tensor);
  }

  /** @param {Filter} filter */
  setFilter({ text, kind }) {
    if (this.#input.value === text && this.#kind.value === kind) return;
    this.#input.value = text;
    this.#kind.value = kind;
    void this.#applyFilter();
  }

  destroy() {
    this.#regex.close();
    this.#grid.destroy();
    this.#detail.destroy();
  }

  #viewSwitch() {
    const buttons = ["Tree", "Table"].map((title, at) =>
      h(
        "button",
        {
          type: "button", class: "bpk-button", "aria-pressed": String(at === 0),
          onclick: () => {
            this.#asTree = at === 0;
            buttons.forEach((button, other) => button.setAttribute("aria-pressed", String(other === at)));
            this.#show();
          },
        },
        title,
      ),
    );
    return h("div", { class: "bpk-switch", role: "group", "aria-label": "View" }, ...buttons);
  }

  #filterChanged() {
    void this.#applyFilter();
    const kind = /** @type {FilterKind} */ (this.#kind.value);
    this.#options.onFilter?.({ text: this.#input.value, kind });
  }

  async #applyFilter() {
    this.#turn += 1;
    const mine = this.#turn;
    const text = this.#input.value;
    try {
      const found = await this.#matches(text, this.#kind.value);
      if (mine !== this.#turn) return; // another letter was typed meanwhile
      this.#found = found;
      this.#complain("");
      this.#tree = null;
      this.#show();
    } catch (error) {
      if (mine !== this.#turn) return;
      if (!(error instanceof RegexTrouble)) throw error;
      this.#complain(`${error.message}; the list is as it was`);
    }
  }

  /** @param {string} text @param {string} kind */
  async #matches(text, kind) {
    const { names } = this.#columns;
    if (text === "") return this.#all;
    if (kind === "regex") return this.#regex.match(text, "u");
    return kind === "glob" ? matchingGlob(names, text) : containing(names, text);
  }

  /** @param {string} text */
  #complain(text) {
    this.#trouble.textContent = text;
    this.#trouble.hidden = text === "";
    this.#input.setAttribute("aria-invalid", String(text !== ""));
  }

  /** @param {SortKey} key */
  #sort(key) {
    this.#descending = this.#sortKey === key ? !this.#descending : key === "nbytes";
    this.#sortKey = key;
    this.#show();
  }

  #show() {
    this.#grid.setSortable(!this.#asTree);
    this.#grid.setSort(this.#asTree ? null : this.#sortKey, this.#descending);
    if (this.#asTree) this.#showTree();
    else this.#showTable();
    const { count } = this.#columns;
    const found = this.#found.length;
    const beyond = this.#grid.beyond;
    this.#count.textContent =
      (found === count ? plural(count, "tensor") : `${grouped(found)} of ${plural(count, "tensor")}`) +
      (beyond > 0 ? `; the last ${grouped(beyond)} are not listed` : "");
  }

  #showTable() {
    const { names, dtypes, dtype, shapeTexts, shape, nbytes, kinds } = this.#columns;
    const order = sorted(this.#columns, this.#found, this.#sortKey, this.#descending);
    this.#grid.show({
      count: order.length,
      isChosen: (at) => order[at] === this.#chosen,
      choose: (at) => this.choose(order[at]),
      fill: (cells, row, at) => {
        const tensor = order[at];
        put(row, kinds[dtype[tensor]], cells, [
          visible(names[tensor]), visible(dtypes[dtype[tensor]], 40), shapeTexts[shape[tensor]], humanBytes(nbytes[tensor]),
        ]);
      },
    });
    this.#shown = order;
  }

  #showTree() {
    const { names, dtypes, dtype, shapeTexts, shape, nbytes, kinds } = this.#columns;
    if (!this.#tree) {
      this.#tree = buildTree(names, this.#found, nbytes);
      openSome(this.#tree, this.#found === this.#all ? OPEN_AT_FIRST : OPEN_WHEN_FILTERED);
    }
    const tree = this.#tree;
    const view = () => {
      const shown = shownNodes(tree);
      this.#shown = shown;
      return {
        count: shown.length,
        level: (/** @type {number} */ at) => tree.level[shown[at]],
        isOpen: (/** @type {number} */ at) => (tree.tensor[shown[at]] >= 0 ? undefined : tree.open[shown[at]] === 1),
        toggle: (/** @type {number} */ at, /** @type {boolean} */ open) => {
          tree.open[shown[at]] = Number(open);
          this.#grid.change(view());
        },
        isChosen: (/** @type {number} */ at) => tree.tensor[shown[at]] >= 0 && tree.tensor[shown[at]] === this.#chosen,
        choose: (/** @type {number} */ at) => this.choose(tree.tensor[shown[at]]),
        fill: (/** @type {HTMLElement[]} */ cells, /** @type {HTMLElement} */ row, /** @type {number} */ at) => {
          const node = shown[at];
          const tensor = tree.tensor[node];
          const label = visible(tree.label[node]) || "(empty)";
          if (tensor < 0) put(row, "", cells, [label, "", plural(tree.tensors[node], "tensor"), humanBytes(tree.nbytes[node])]);
          else {
            put(row, kinds[dtype[tensor]], cells, [
              label, visible(dtypes[dtype[tensor]], 40), shapeTexts[shape[tensor]], humanBytes(nbytes[tensor]),
            ]);
          }
        },
      };
    };
    this.#grid.show(view());
  }

  /** @param {number} tensor */
  #bringIntoView(tensor) {
    if (!this.#asTree) {
      const at = this.#shown.indexOf(tensor);
      if (at >= 0) this.#grid.goTo(at, { focus: false });
      return;
    }
    if (!this.#tree) return;
    const node = reveal(this.#tree, tensor);
    this.#showTree();
    const at = node < 0 ? -1 : this.#shown.indexOf(node);
    if (at >= 0) this.#grid.goTo(at, { focus: false });
  }
}

/**
 * @param {HTMLElement} row
 * @param {string} kind
 * @param {HTMLElement[]} cells
 * @param {string[]} texts
 */
function put(row, kind, cells, texts) {
  if (row.dataset.kind !== kind) row.dataset.kind = kind;
  texts.forEach((text, at) => {
    const node = /** @type {Text} */ (cells[at].firstChild);
    if (node.data !== text) node.data = text;
  });
}
