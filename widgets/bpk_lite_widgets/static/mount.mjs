/**
 * The inspector: asks the transport what there is and puts the parts together.
 *
 * The same for a notebook and a page; they differ in the transport.
 */

import { Browser } from "./browse.mjs";
import { decodeColumns } from "./columns.mjs";
import { drawCompare } from "./compare.mjs";
import { h } from "./dom.mjs";
import { message } from "./statistics.mjs";
import { drawSummary } from "./summary.mjs";
import { drawMetadata, drawNotes, drawScalars } from "./tables.mjs";
import { Tabs } from "./tabs.mjs";
import { grouped } from "./text.mjs";

/** @import { Filter, Options } from "./browse.mjs" */
/** @import { Transport } from "./protocol.mjs" */

/**
 * @typedef {{
 *   choose: (name: string | null) => void,
 *   filter: (filter: Filter) => void,
 *   destroy: () => void,
 * }} Inspector
 */

/**
 * Draw the inspector into an element.
 *
 * @param {HTMLElement} element Its content is replaced.
 * @param {Transport} transport
 * @param {Options} [options]
 * @returns {Promise<Inspector>} Fulfilled once it is drawn; also when the file cannot be shown, which
 *   is then what it says.
 */
export async function mount(element, transport, options = {}) {
  const root = h("div", { class: "bpk-inspector", "data-state": "loading", "data-lm-suppress-shortcuts": "true" });
  root.append(h("p", { class: "bpk-empty", role: "status" }, "Reading…"));
  element.replaceChildren(root);
  try {
    const { data, buffers } = await transport.request("describe");
    return draw(root, transport, data, buffers, options);
  } catch (error) {
    root.dataset.state = "failed";
    root.replaceChildren(
      h("div", { class: "bpk-failed", role: "alert" }, h("h2", {}, "Nothing can be shown"), h("p", {}, message(error))),
    );
    return { choose() {}, filter() {}, destroy: () => root.remove() };
  }
}

/**
 * @param {HTMLElement} root
 * @param {Transport} transport
 * @param {any} data
 * @param {ArrayBuffer[]} buffers
 * @param {Options} options
 * @returns {Inspector}
 */
function draw(root, transport, data, buffers, options) {
  const columns = decodeColumns(data.columns, buffers);
  const spoken = h("p", { class: "bpk-unseen", role: "status" });
  const toast = h("p", { class: "bpk-toast", "aria-hidden": "true", hidden: true });
  let hide = 0;
  const say = (/** @type {string} */ text) => {
    spoken.textContent = toast.textContent = text;
    toast.hidden = false;
    clearTimeout(hide);
    hide = setTimeout(() => {
      toast.hidden = true;
      spoken.textContent = "";
    }, 2500);
  };
  const browser = new Browser(columns, transport, data.source, say, options);
  const stop = new AbortController();
  const showTensor = (/** @type {number} */ tensor) => {
    tabs.show("tensors");
    browser.chooseAndReveal(tensor);
  };
  const lists = [
    { key: "metadata", title: "Metadata", items: data.metadata, draw: () => drawMetadata(data.metadata) },
    { key: "scalars", title: "Scalars", items: data.scalars, draw: () => drawScalars(data.scalars) },
    { key: "notes", title: "Notes", items: data.notes, draw: () => drawNotes(data.notes, showTensor) },
  ].filter(({ items }) => items.length > 0);
  const tabs = new Tabs("Parts of the file", [
    { key: "tensors", title: "Tensors", count: grouped(columns.count), draw: () => browser.element },
    ...lists.map(({ items, ...tab }) => ({ ...tab, count: grouped(items.length) })),
    ...(data.compare
      ? [{ key: "compare", title: "Compare", draw: () => drawCompare(transport, data.compare, columns, showTensor, stop.signal) }]
      : []),
  ]);
  if (!columns.count && lists.length) tabs.show(lists[0].key);
  root.addEventListener("keydown", keepKeys);
  root.replaceChildren(drawSummary(data.facts), tabs.element, spoken, toast);
  root.dataset.state = "ready";
  return {
    choose: (name) => browser.chooseName(name),
    filter: (filter) => browser.setFilter(filter),
    destroy() {
      stop.abort();
      clearTimeout(hide);
      browser.destroy();
      root.remove();
    },
  };
}

/**
 * Notebooks act on plain letters and arrows ("dd" deletes a cell): those pressed in here stay here.
 *
 * @param {KeyboardEvent} event
 */
function keepKeys(event) {
  if (!event.ctrlKey && !event.metaKey && !event.altKey && event.key !== "Escape" && event.key !== "Tab") {
    event.stopPropagation();
  }
}
