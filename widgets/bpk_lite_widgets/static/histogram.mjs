/** A histogram as bars, with the same counts as a table for who does not see the bars. */

import { h, svg } from "./dom.mjs";
import { grouped, number } from "./text.mjs";

const HEIGHT = 96;

/**
 * @param {{ edges: number[], counts: number[], below: number, above: number }} histogram
 */
export function drawHistogram({ edges, counts, below, above }) {
  const most = Math.max(1, ...counts);
  const holder = h("div", { class: "bpk-histogram" });
  const logarithmic = h("input", { type: "checkbox" });
  const draw = () => {
    const height = (/** @type {number} */ count) =>
      count === 0 ? 0 : Math.max(1, HEIGHT * (logarithmic.checked ? Math.log1p(count) / Math.log1p(most) : count / most));
    const bars = counts.map((count, at) =>
      svg(
        "rect",
        { x: at + 0.04, width: 0.92, y: HEIGHT - height(count), height: height(count) },
        svg("title", {}, `${range(edges, at)}: ${grouped(count)}`),
      ),
    );
    const zero = zeroPlace(edges);
    holder.replaceChildren(
      svg(
        "svg",
        {
          viewBox: `0 0 ${counts.length} ${HEIGHT}`, preserveAspectRatio: "none", role: "img",
          "aria-label": describe(edges, counts, below, above),
        },
        ...bars,
        zero !== null && svg("line", { class: "bpk-zero", x1: zero, x2: zero, y1: 0, y2: HEIGHT }),
      ),
    );
  };
  logarithmic.addEventListener("change", draw);
  draw();
  const outside = [below && `${grouped(below)} below`, above && `${grouped(above)} above`].filter(Boolean);
  return h(
    "figure",
    { class: "bpk-figure" },
    holder,
    h(
      "div",
      { class: "bpk-ends" },
      h("span", {}, number(edges[0])),
      outside.length > 0 && h("span", { class: "bpk-soft" }, outside.join(" · ")),
      h("span", {}, number(edges[edges.length - 1])),
    ),
    h(
      "figcaption",
      { class: "bpk-row-of-controls" },
      h("label", { class: "bpk-check" }, logarithmic, " Log scale"),
      h(
        "details",
        {},
        h("summary", {}, "Counts"),
        h(
          "div",
          { class: "bpk-scroll bpk-low", tabindex: 0, role: "region", "aria-label": "Counts of the histogram" },
          h(
            "table",
            { class: "bpk-table" },
            h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Values"), h("th", { scope: "col" }, "Elements"))),
            h(
              "tbody",
              {},
              ...counts.map((count, at) =>
                h("tr", {}, h("th", { scope: "row" }, range(edges, at)), h("td", { class: "bpk-number" }, grouped(count))),
              ),
            ),
          ),
        ),
      ),
    ),
  );
}

/** @param {number[]} edges @param {number} at */
function range(edges, at) {
  return `${number(edges[at])} to ${number(edges[at + 1])}`;
}

/** @param {number[]} edges Where zero is, in bins, if inside. */
function zeroPlace(edges) {
  const [low, high] = [edges[0], edges[edges.length - 1]];
  return low < 0 && high > 0 ? ((0 - low) / (high - low)) * (edges.length - 1) : null;
}

/**
 * @param {number[]} edges
 * @param {number[]} counts
 * @param {number} below
 * @param {number} above
 */
function describe(edges, counts, below, above) {
  const fullest = counts.indexOf(Math.max(...counts));
  return (
    `Histogram from ${number(edges[0])} to ${number(edges[edges.length - 1])} in ${counts.length} bins; ` +
    `the fullest is ${range(edges, fullest)} with ${grouped(counts[fullest])} elements; ` +
    `${grouped(below)} lie below, ${grouped(above)} above`
  );
}
