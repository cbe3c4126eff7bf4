/**
 * Two checkpoints side by side: each name with its state in words and by sign, and how far the
 * values are apart once they have been compared.
 */

import { h, labelled } from "./dom.mjs";
import { Grid } from "./grid.mjs";
import { message } from "./statistics.mjs";
import { grouped, humanBytes, lastPart, number, plural, shapeText, visible } from "./text.mjs";

/** @import { Columns } from "./columns.mjs" */
/** @import { Transport } from "./protocol.mjs" */

/**
 * A row as `_compare.py` sends it.
 *
 * @typedef {[
 *   name: string, status: string, oldType: string | null, newType: string | null,
 *   oldShape: number[] | null, newShape: number[] | null, differing: number | null,
 *   elements: number | null, maxAbs: number | string | null, maxRel: number | string | null,
 *   cosine: number | string | null, note: string,
 * ]} DiffRow
 */

/** @type {Record<string, [string, string]>} */
const STATES = {
  added: ["+", "added"],
  removed: ["−", "removed"],
  shape: ["≠", "other shape"],
  dtype: ["≠", "other type"],
  changed: ["≈", "changed"],
  unread: ["?", "not compared"],
  same: ["=", "identical"],
};

/**
 * @param {Transport} transport
 * @param {{ name: string }} other
 * @param {Columns} columns
 * @param {(tensor: number) => void} showTensor
 * @param {AbortSignal} gone
 */
export function drawCompare(transport, other, columns, showTensor, gone) {
  /** @type {DiffRow[]} */
  let rows = [];
  /** @type {number[]} */
  let shown = [];
  const grid = new Grid("Differences", [
    { title: "State", className: "bpk-state" },
    { title: "Name", className: "bpk-name" },
    { title: "Here → there", className: "bpk-dtype" },
    { title: "Max. abs.", className: "bpk-figure-cell" },
    { title: "Max. rel.", className: "bpk-figure-cell" },
    { title: "Cosine", className: "bpk-figure-cell" },
  ]);
  gone.addEventListener("abort", () => grid.destroy(), { once: true });
  const state = h("select", { class: "bpk-input" }, h("option", { value: "" }, "all states"));
  state.addEventListener("change", () => show());
  const work = h("div", { class: "bpk-row-of-controls", "aria-live": "polite" });
  const totals = h("p", { class: "bpk-soft", role: "status" });
  const texts = h("div", {});

  const show = () => {
    shown = rows.flatMap(([, status], at) => (state.value === "" || status === state.value ? [at] : []));
    grid.show({
      count: shown.length,
      choose: (at) => {
        const tensor = columns.names.indexOf(rows[shown[at]][0]);
        if (tensor >= 0) showTensor(tensor);
      },
      fill: (cells, row, at) => fillRow(cells, row, rows[shown[at]]),
    });
  };

  /** @param {any} data */
  const take = (data) => {
    const order = Object.keys(STATES);
    rows = data.rows;
    // What differs most comes first; within a state the names stay in order.
    rows.sort((a, b) => order.indexOf(a[1]) - order.indexOf(b[1]));
    totals.textContent = Object.keys(STATES)
      .filter((key) => data.counts[key])
      .map((key) => `${grouped(data.counts[key])} ${STATES[key][1]}`)
      .join(" · ");
    const chosen = state.value;
    state.replaceChildren(
      h("option", { value: "" }, "all states"),
      ...Object.keys(STATES)
        .filter((key) => data.counts[key])
        .map((key) => h("option", { value: key }, STATES[key][1])),
    );
    state.value = data.counts[chosen] ? chosen : "";
    texts.replaceChildren(...drawTexts(data.texts));
    show();
    if (data.read) {
      work.replaceChildren(h("span", {}, "Values compared."));
    } else if (data.nbytes > 0) {
      offer(data.nbytes, "");
    } else {
      work.replaceChildren();
    }
  };

  /** @param {number} nbytes @param {string} before */
  const offer = (nbytes, before) => {
    work.replaceChildren(
      h("button", { type: "button", class: "bpk-button", onclick: () => void ask(true, nbytes) }, "Compare values"),
      h("span", { class: "bpk-soft" }, `${before}reads ${humanBytes(nbytes)} of each`),
    );
  };

  /** @param {boolean} data @param {number} nbytes */
  const ask = async (data, nbytes) => {
    const stop = new AbortController();
    const bar = h("progress", { max: 1, value: 0, "aria-label": "Comparing" });
    const cancel = h("button", { type: "button", class: "bpk-button", onclick: () => stop.abort() }, "Cancel");
    work.replaceChildren(bar, cancel);
    if (data) cancel.focus();
    try {
      const answer = await transport.request(
        "compare",
        { data },
        {
          signal: AbortSignal.any([stop.signal, gone]),
          onProgress: (done, total) => {
            bar.max = Math.max(1, total);
            bar.value = done;
          },
        },
      );
      take(answer.data);
    } catch (error) {
      if (gone.aborted) return;
      if (stop.signal.aborted) offer(nbytes, "Cancelled; it ");
      else work.replaceChildren(h("p", { class: "bpk-trouble", role: "alert" }, message(error)));
    }
  };
  void ask(false, 0);

  return h(
    "div",
    { class: "bpk-compare" },
    h("p", { class: "bpk-soft" }, "Compared with ", h("b", { title: visible(other.name, 2000) }, visible(lastPart(other.name)))),
    h("div", { class: "bpk-row-of-controls bpk-toolbar" }, labelled("Show", state), work),
    grid.element,
    totals,
    texts,
  );
}

/**
 * @param {HTMLElement[]} cells
 * @param {HTMLElement} row
 * @param {DiffRow} data
 */
function fillRow(cells, row, data) {
  const [name, status, oldType, newType, oldShape, newShape, differing, elements, maxAbs, maxRel, cosine, note] = data;
  const [sign, word] = STATES[status];
  const changed = differing ? `, ${grouped(differing)} of ${grouped(elements ?? 0)} differ` : "";
  const step = [
    step2(oldType, newType),
    step2(oldShape && shapeText(oldShape), newShape && shapeText(newShape)),
    note,
  ].filter(Boolean);
  row.dataset.state = status;
  [
    `${sign} ${word}`, visible(name), visible(step.join(", ")) + changed,
    number(maxAbs, 4), number(maxRel, 4), typeof cosine === "number" ? cosine.toFixed(6) : number(cosine),
  ].forEach((text, at) => {
    /** @type {Text} */ (cells[at].firstChild).data = text;
  });
}

/** @param {string | null} old @param {string | null} next */
function step2(old, next) {
  if (old === null) return next;
  return next === null || old === next ? old : `${old} → ${next}`;
}

/** @param {[string, string, string | null, string | null][]} texts */
function drawTexts(texts) {
  if (!texts.length) return [];
  return [
    h("h3", { class: "bpk-apart" }, plural(texts.length, "other difference")),
    h(
      "ul",
      { class: "bpk-notes" },
      ...texts.slice(0, 200).map(([kind, key, old, next]) =>
        h("li", {}, h("b", {}, `${kind} ${visible(key)}`), `: ${visible(old ?? "absent")} → ${visible(next ?? "absent")}`),
      ),
    ),
  ];
}
