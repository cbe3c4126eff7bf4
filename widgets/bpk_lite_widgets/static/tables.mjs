/** Metadata, scalars and notes: small tables, their text as it is in the file. */

import { h } from "./dom.mjs";
import { plural, visible } from "./text.mjs";

const MOST = 500;
const LONG = 4000;

/** @param {[string, string][]} metadata */
export function drawMetadata(metadata) {
  return table(
    "Metadata of the file",
    ["Key", "Value"],
    metadata.map(([key, value]) => [visible(key), valueCell(value)]),
  );
}

/** @param {[string, string, string][]} scalars Name, kind, value as text. */
export function drawScalars(scalars) {
  return table(
    "Scalars of the file",
    ["Name", "Kind", "Value"],
    scalars.map(([name, kind, value]) => [visible(name), kind, visible(value)]),
  );
}

/**
 * @param {{ code: string, message: string, tensor: number | null, level: string }[]} notes
 * @param {(tensor: number) => void} choose
 */
export function drawNotes(notes, choose) {
  const items = notes.slice(0, MOST).map(({ code, message, tensor, level }) =>
    h(
      "li",
      { class: "bpk-note", "data-level": level },
      h("b", {}, `${level === "warning" ? "Warning" : "Note"}: ${code}`),
      h("p", {}, visible(message, LONG)),
      tensor !== null &&
        h("button", { type: "button", class: "bpk-button", onclick: () => choose(tensor) }, "Show the tensor"),
    ),
  );
  return h(
    "div",
    {},
    h("ul", { class: "bpk-notes" }, ...items),
    notes.length > MOST && h("p", {}, `and ${plural(notes.length - MOST, "more note")}`),
  );
}

/** @param {string} value Long and structured values get room of their own. */
function valueCell(value) {
  const pretty = prettyJson(value);
  if (pretty.length <= 200 && !pretty.includes("\n")) return visible(pretty, LONG);
  const shown = pretty.split("\n").map((line) => visible(line, LONG)).join("\n");
  return h("details", {}, h("summary", {}, visible(value, 120)), h("pre", {}, shown.slice(0, 10 * LONG)));
}

/** @param {string} text */
function prettyJson(text) {
  if (!/^\s*[[{]/.test(text) || text.length > 1e5) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/**
 * @param {string} caption
 * @param {string[]} titles
 * @param {(string | Node)[][]} rows
 */
function table(caption, titles, rows) {
  const body = rows.slice(0, MOST).map(([first, ...rest]) =>
    h("tr", {}, h("th", { scope: "row" }, first), ...rest.map((cell) => h("td", {}, cell))),
  );
  return h(
    "div",
    { class: "bpk-scroll", tabindex: 0, role: "region", "aria-label": caption },
    h(
      "table",
      { class: "bpk-table" },
      h("thead", {}, h("tr", {}, ...titles.map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, ...body),
    ),
    rows.length > MOST && h("p", {}, `and ${plural(rows.length - MOST, "more row")}`),
  );
}
