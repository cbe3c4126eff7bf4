/** A strip of tabs: arrows move between them, Tab goes into the panel that is shown. */

import { freshId, h } from "./dom.mjs";

/**
 * @typedef {{ key: string, title: string, count?: string, draw: () => Node }} Tab
 *   `draw` is called when the tab is first shown.
 */

export class Tabs {
  element;
  #tabs;
  /** @type {HTMLButtonElement[]} */
  #buttons;
  /** @type {HTMLElement[]} */
  #panels;

  /**
   * @param {string} label
   * @param {Tab[]} tabs
   */
  constructor(label, tabs) {
    this.#tabs = tabs;
    const ids = tabs.map(() => [freshId(), freshId()]);
    this.#buttons = tabs.map(({ title, count, key }, at) =>
      h(
        "button",
        {
          type: "button", role: "tab", id: ids[at][0], "aria-controls": ids[at][1], class: "bpk-tab",
          "data-key": key, onclick: () => this.show(key), onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event, at),
        },
        title,
        count !== undefined && h("span", { class: "bpk-count" }, ` ${count}`),
      ),
    );
    this.#panels = tabs.map((_, at) =>
      h("div", { role: "tabpanel", id: ids[at][1], "aria-labelledby": ids[at][0], class: "bpk-panel", hidden: true }),
    );
    this.element = h(
      "div",
      { class: "bpk-tabs" },
      tabs.length > 1 && h("div", { role: "tablist", "aria-label": label, class: "bpk-tablist" }, ...this.#buttons),
      ...this.#panels,
    );
    if (tabs.length === 1) {
      this.#panels[0].removeAttribute("role");
      this.#panels[0].removeAttribute("aria-labelledby");
    }
    this.show(tabs[0].key);
  }

  /** @param {string} key */
  show(key) {
    this.#tabs.forEach((tab, at) => {
      const shown = tab.key === key;
      this.#buttons[at].setAttribute("aria-selected", String(shown));
      this.#buttons[at].tabIndex = shown ? 0 : -1;
      this.#panels[at].hidden = !shown;
      if (shown && !this.#panels[at].hasChildNodes()) this.#panels[at].append(tab.draw());
    });
  }

  /** @param {KeyboardEvent} event @param {number} at */
  #key(event, at) {
    const last = this.#tabs.length - 1;
    /** @type {Record<string, number>} */
    const moves = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at === 0 ? last : at - 1, Home: 0, End: last };
    if (!(event.key in moves)) return;
    const next = moves[event.key];
    this.show(this.#tabs[next].key);
    this.#buttons[next].focus();
    event.preventDefault();
  }
}
