/** The head of the inspector: what the file is, how large, of which dtypes. */

import { kindOf } from "./columns.mjs";
import { h } from "./dom.mjs";
import { humanBytes, humanCount, lastPart, plural, visible } from "./text.mjs";

/**
 * @typedef {{ dtype: string, tensors: number, nbytes: number }} DTypeShare
 * @typedef {{
 *   name: string, format: string, kind: string, size: number | null,
 *   tensors: number, elements: number, nbytes: number, padding: number | null,
 *   dtypes: DTypeShare[],
 * }} Facts
 */

/** @param {Facts} facts */
export function drawSummary(facts) {
  const figures = [
    [plural(facts.tensors, "tensor"), ""],
    [`${humanCount(facts.elements)} elements`, `${facts.elements.toLocaleString("en-US")} elements`],
    facts.size === null
      ? [humanBytes(facts.nbytes), `${facts.nbytes.toLocaleString("en-US")} bytes of tensors`]
      : [humanBytes(facts.size), `${facts.size.toLocaleString("en-US")} bytes in the file`],
    facts.padding ? [`${share(facts.padding)} padding`, "bytes between the tensors, of all bytes"] : null,
  ].filter((item) => item !== null);
  return h(
    "header",
    { class: "bpk-head" },
    h(
      "div",
      { class: "bpk-title" },
      h("h2", { class: "bpk-file", title: visible(facts.name, 2000) }, visible(lastPart(facts.name))),
      h("p", { class: "bpk-kind" }, [facts.format, facts.kind].filter(Boolean).map((text) => visible(text)).join(" · ")),
    ),
    h(
      "ul",
      { class: "bpk-figures", "aria-label": "Size" },
      ...figures.map(([text, title]) => h("li", { title: title || undefined }, text)),
    ),
    facts.dtypes.length ? drawDtypes(facts) : null,
  );
}

/** @param {Facts} facts */
function drawDtypes({ dtypes, nbytes }) {
  const total = Math.max(1, nbytes);
  const bar = h("div", { class: "bpk-bar", "aria-hidden": "true" });
  for (const { dtype, nbytes: part } of dtypes) {
    const piece = h("span", { "data-kind": kindOf(dtype) });
    piece.style.flexGrow = String(Math.max(part / total, 0.004));
    bar.append(piece);
  }
  const shown = dtypes.slice(0, 8);
  const more = dtypes.length - shown.length;
  return h(
    "div",
    { class: "bpk-dtypes" },
    bar,
    h(
      "ul",
      { class: "bpk-legend", "aria-label": "Element types" },
      ...shown.map(({ dtype, tensors, nbytes: part }) =>
        h(
          "li",
          { title: `${plural(tensors, "tensor")}, ${humanBytes(part)}` },
          h("span", { class: "bpk-swatch", "data-kind": kindOf(dtype), "aria-hidden": "true" }),
          h("b", {}, visible(dtype, 60)),
          ` ${share(part / total)} · ${plural(tensors, "tensor")}`,
        ),
      ),
      more > 0 && h("li", {}, `and ${more} more`),
    ),
  );
}

/** @param {number} part */
function share(part) {
  if (part === 0 || part >= 0.9995) return `${Math.round(part * 100)} %`;
  return part < 0.001 ? "< 0.1 %" : part > 0.999 ? "> 99.9 %" : `${Number((part * 100).toPrecision(part < 0.1 ? 2 : 3))} %`;
}
