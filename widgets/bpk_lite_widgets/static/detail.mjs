/** The chosen tensor: what it is, its statistics, a picture, its values, the Python that gets it. */

import { h } from "./dom.mjs";
import { drawPicture } from "./picture.mjs";
import { codeBlock, sliceSnippet, tensorSnippet } from "./snippet.mjs";
import { drawStatistics } from "./statistics.mjs";
import { grouped, humanBytes, shapeText, visible } from "./text.mjs";

/** @import { Columns } from "./columns.mjs" */
/** @import { Source } from "./snippet.mjs" */
/** @import { Transport } from "./protocol.mjs" */

export class Detail {
  element;
  #columns;
  #transport;
  #source;
  #say;
  /** Fires when what is drawn is left. */
  #left = new AbortController();

  /**
   * @param {Columns} columns
   * @param {Transport} transport
   * @param {Source} source
   * @param {(text: string) => void} say
   */
  constructor(columns, transport, source, say) {
    this.#columns = columns;
    this.#transport = transport;
    this.#source = source;
    this.#say = say;
    this.element = h("section", { class: "bpk-detail", "aria-label": "Chosen tensor", tabindex: -1 });
    this.clear();
  }

  clear() {
    this.#leave();
    this.element.replaceChildren(
      h("p", { class: "bpk-empty" }, this.#columns.count ? "Choose a tensor to see what is in it." : "There are no tensors in this file."),
    );
  }

  /** @param {number} tensor */
  show(tensor) {
    this.#leave();
    const left = this.#left.signal;
    const { names, dtypes, dtype, shapes, shape, nbytes, offset, id, hasId } = this.#columns;
    const dims = shapes[shape[tensor]];
    const elements = dims.reduce((product, dim) => product * dim, 1);
    /** @type {[string, string][]} */
    const facts = [
      ["Type", visible(dtypes[dtype[tensor]])],
      ["Shape", shapeText(dims)],
      ["Elements", grouped(elements)],
      ["Size", humanBytes(nbytes[tensor])],
    ];
    if (!Number.isNaN(offset[tensor])) facts.push(["Offset", grouped(offset[tensor])]);
    if (hasId[tensor]) facts.push(["Parameter id", String(id[tensor])]);

    const code = codeBlock(this.#say);
    const snippet = tensorSnippet(this.#source, names[tensor]);
    code.set(snippet);
    const sections = [
      h("h3", { class: "bpk-name-full" }, visible(names[tensor], 2000) || h("i", {}, "(empty name)")),
      h("dl", { class: "bpk-facts" }, ...facts.map(([label, text]) => h("div", {}, h("dt", {}, label), h("dd", {}, text)))),
    ];
    if (elements > 0) {
      sections.push(
        h("h4", {}, "Statistics"),
        drawStatistics(this.#transport, tensor, nbytes[tensor], left),
        h("h4", {}, "Values"),
        drawPicture(this.#transport, tensor, dims, left, (axes, index) =>
          code.set(snippet + sliceSnippet(dims, axes, index)),
        ),
      );
    } else {
      sections.push(h("p", { class: "bpk-soft" }, "It has no elements: one of its dimensions is 0."));
    }
    sections.push(h("h4", {}, "Python"), code.element);
    this.element.replaceChildren(...sections);
    this.element.scrollTop = 0;
  }

  destroy() {
    this.#leave();
  }

  #leave() {
    this.#left.abort();
    this.#left = new AbortController();
  }
}
