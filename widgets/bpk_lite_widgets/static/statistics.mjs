/** Statistics of the chosen tensor: asked for, watched, cancelled, shown. */

import { h } from "./dom.mjs";
import { drawHistogram } from "./histogram.mjs";
import { grouped, humanBytes, number } from "./text.mjs";

/** @import { Transport } from "./protocol.mjs" */

// A tensor up to here is counted as soon as it is chosen: it takes a few frames.
const AT_ONCE = 8 << 20;

/**
 * @param {Transport} transport
 * @param {number} tensor
 * @param {number} nbytes
 * @param {AbortSignal} left Fires when another tensor is chosen.
 */
export function drawStatistics(transport, tensor, nbytes, left) {
  const box = h("div", { class: "bpk-statistics", "aria-live": "polite" });
  const offer = (/** @type {string} */ why = "") => {
    const start = h("button", { type: "button", class: "bpk-button", onclick: () => run(true) }, "Compute statistics");
    box.replaceChildren(
      h("p", { class: "bpk-row-of-controls" }, start, h("span", { class: "bpk-soft" }, `${why}reads ${humanBytes(nbytes)}`)),
    );
    return start;
  };
  const run = async (/** @type {boolean} */ asked) => {
    const stop = new AbortController();
    const bar = h("progress", { max: 1, value: 0, "aria-label": "Statistics" });
    const cancel = h("button", { type: "button", class: "bpk-button", onclick: () => stop.abort() }, "Cancel");
    box.replaceChildren(h("p", { class: "bpk-row-of-controls" }, bar, cancel));
    if (asked) cancel.focus();
    // The button goes away when the work is done, and focus would be lost with it.
    const hadFocus = () =>
      document.activeElement === cancel || (asked && document.activeElement === document.body);
    try {
      const signal = AbortSignal.any([stop.signal, left]);
      const onProgress = (/** @type {number} */ done, /** @type {number} */ total) => {
        bar.max = Math.max(1, total);
        bar.value = done;
      };
      const { data } = await transport.request("statistics", { tensor }, { signal, onProgress });
      const focus = hadFocus();
      box.replaceChildren(...drawResult(data));
      if (focus) {
        box.tabIndex = -1;
        box.focus();
      }
    } catch (error) {
      if (left.aborted) return;
      const focus = hadFocus();
      if (stop.signal.aborted) {
        const start = offer("Cancelled; it ");
        if (focus) start.focus();
      } else {
        box.replaceChildren(h("p", { class: "bpk-trouble", role: "alert" }, message(error)));
      }
    }
  };
  if (nbytes <= AT_ONCE) void run(false);
  else offer();
  return box;
}

/** @param {unknown} error */
export function message(error) {
  return error instanceof Error ? error.message : String(error);
}

/**
 * @param {any} stats `TensorStats` as JSON.
 * @returns {Node[]}
 */
function drawResult(stats) {
  const share = (/** @type {number} */ part) =>
    part && stats.count ? ` (${Number(((100 * part) / stats.count).toPrecision(2))} %)` : "";
  const infinite = stats.infs_positive + stats.infs_negative;
  /** @type {[string, string, boolean?][]} */
  const facts = [
    ["Minimum", number(stats.min)],
    ["Maximum", number(stats.max)],
    ["Mean", number(stats.mean)],
    ["Std. deviation", number(stats.std)],
    ["Median", number(stats.quantiles?.["0.5"])],
    ["Zeros", grouped(stats.zeros) + share(stats.zeros)],
  ];
  if (stats.distinct === null || stats.distinct === undefined) {
    facts.push(["NaN", grouped(stats.nans) + share(stats.nans), stats.nans > 0]);
    facts.push(["Infinite", grouped(infinite) + share(infinite), infinite > 0]);
  } else {
    facts.push(["Distinct", (stats.distinct_is_exact ? "" : "≥ ") + grouped(stats.distinct)]);
  }
  const list = h(
    "dl",
    { class: "bpk-facts" },
    ...facts.map(([label, text, bad]) =>
      h("div", { class: bad ? "bpk-bad" : undefined }, h("dt", {}, label), h("dd", {}, bad ? `⚠ ${text}` : text)),
    ),
  );
  /** @type {Node[]} */
  const nodes = stats.count ? [list] : [];
  if (stats.note) nodes.push(h("p", { class: "bpk-soft" }, stats.note));
  if (stats.histogram) nodes.push(drawHistogram(stats.histogram));
  return nodes;
}
