/**
 * Two axes of a tensor as a picture, beside the numbers themselves.
 *
 * The picture comes as float32 and gets its colours here, so that the colour range follows the
 * slider without asking anyone. The table beside it has the values as the file has them, at the
 * place that the fields name or that was clicked: nothing here can only be seen.
 */

import { h, labelled } from "./dom.mjs";
import { bounds, coloured, colourScale } from "./palette.mjs";
import { message } from "./statistics.mjs";
import { number } from "./text.mjs";

/** @import { Transport } from "./protocol.mjs" */

const SIDE = 512; // pixels at most
const ROWS = 8;
const COLUMNS = 6;
const MOST_AXES = 12;

/**
 * @param {Transport} transport
 * @param {number} tensor
 * @param {number[]} shape No dimension is 0.
 * @param {AbortSignal} left Fires when another tensor is chosen.
 * @param {(axes: [number, number], index: Record<number, number>) => void} onPart Told what is shown.
 */
export function drawPicture(transport, tensor, shape, left, onPart) {
  const rank = shape.length;
  /** @type {[number, number]} */
  let axes = [Math.max(0, rank - 2), Math.max(0, rank - 1)];
  /** @type {Record<number, number>} */
  const index = {};
  let corner = [0, 0];
  let turn = 0;
  /** @type {{ values: Float32Array, height: number, width: number } | null} */
  let shown = null;

  const canvas = h("canvas", { role: "img", "aria-label": "Picture of the tensor", width: 1, height: 1 });
  const legend = h("canvas", { class: "bpk-scale", width: 256, height: 1, "aria-hidden": "true" });
  const low = h("span", {});
  const high = h("span", {});
  const caption = h("p", { class: "bpk-soft" });
  const trouble = h("p", { class: "bpk-trouble", role: "alert", hidden: true });
  const clip = h("input", { type: "range", min: 0, max: 25, step: 0.5, value: 1 });
  const clipText = h("output", { class: "bpk-soft" });
  const table = h("div", { class: "bpk-scroll", tabindex: 0, role: "region", "aria-label": "Values of the tensor" });
  const row = h("input", { type: "number", min: 0, value: 0, class: "bpk-input" });
  const column = h("input", { type: "number", min: 0, value: 0, class: "bpk-input" });

  const size = (/** @type {0 | 1} */ side) => (rank === 0 || (rank === 1 && side === 0) ? 1 : shape[axes[side]]);

  const paint = () => {
    if (!shown) return;
    const { values, height, width } = shown;
    const share = Number(clip.value) / 100;
    let [from, to] = bounds(values, share);
    const twoSigns = from < 0 && to > 0;
    if (twoSigns) {
      to = Math.max(-from, to);
      from = -to;
    }
    const scale = colourScale(twoSigns);
    canvas.width = width;
    canvas.height = height;
    const pixels = new Uint8ClampedArray(coloured(values, from, to, scale).buffer);
    canvas.getContext("2d")?.putImageData(new ImageData(pixels, width, height), 0, 0);
    legend.getContext("2d")?.putImageData(new ImageData(new Uint8ClampedArray(scale.slice().buffer), 256, 1), 0, 0);
    low.textContent = number(from);
    high.textContent = number(to);
    clipText.textContent = share === 0 ? "all values" : `${clip.value} % to ${100 - Number(clip.value)} %`;
    clip.setAttribute("aria-valuetext", clipText.textContent);
    canvas.setAttribute("aria-label", `Picture of ${size(0)} rows and ${size(1)} columns, colours from ${number(from)} to ${number(to)}`);
  };

  const askPicture = async () => {
    turn += 1;
    const mine = turn;
    try {
      const { data, buffers } = await transport.request(
        "picture",
        { tensor, axes: rank < 2 ? null : axes, index, size: SIDE },
        { signal: left },
      );
      if (mine !== turn) return;
      const [height, width] = data.shape;
      shown = { values: new Float32Array(buffers[0]), height, width };
      caption.textContent = data.note;
      trouble.hidden = true;
      canvas.classList.toggle("bpk-smooth", height > 256 || width > 256);
      paint();
    } catch (error) {
      fail(error);
    }
  };

  let valueTurn = 0;
  const askValues = async () => {
    valueTurn += 1;
    const mine = valueTurn;
    const last = [Math.max(0, size(0) - ROWS), Math.max(0, size(1) - COLUMNS)];
    const at = corner.map((value, side) => Math.max(0, Math.min(value, last[side])));
    const rows = Math.min(ROWS, size(0));
    const columns = Math.min(COLUMNS, size(1));
    try {
      const { data } = await transport.request(
        "values",
        { tensor, axes: rank < 2 ? null : axes, index, row: at[0], column: at[1], rows, columns },
        { signal: left },
      );
      if (mine !== valueTurn) return;
      table.replaceChildren(valueTable(data.rows, at, rank));
    } catch (error) {
      fail(error);
    }
  };

  /** @param {unknown} error */
  const fail = (error) => {
    if (left.aborted) return;
    trouble.textContent = message(error);
    trouble.hidden = false;
  };

  const ask = () => {
    onPart(axes, index);
    row.max = String(size(0) - 1);
    column.max = String(size(1) - 1);
    void askPicture();
    void askValues();
  };

  for (const [field, side] of /** @type {[HTMLInputElement, 0 | 1][]} */ ([[row, 0], [column, 1]])) {
    field.addEventListener("input", () => {
      corner[side] = clamped(field, size(side));
      void askValues();
    });
  }
  clip.addEventListener("input", paint);
  canvas.addEventListener("click", (event) => {
    const box = canvas.getBoundingClientRect();
    const place = [(event.clientY - box.top) / box.height, (event.clientX - box.left) / box.width];
    corner = place.map((part, side) => Math.min(Math.floor(part * size(/** @type {0 | 1} */ (side))), size(/** @type {0 | 1} */ (side)) - 1));
    row.value = String(corner[0]);
    column.value = String(corner[1]);
    void askValues();
  });

  const pickers = rank < 2 || rank > MOST_AXES ? [] : axisPickers(shape, axes, index, (chosen) => {
    axes = chosen;
    corner = [0, 0];
    row.value = column.value = "0";
    ask();
  });
  ask();

  return h(
    "div",
    { class: "bpk-picture" },
    pickers.length > 0 && h("div", { class: "bpk-row-of-controls bpk-axes" }, ...pickers),
    trouble,
    h(
      "div",
      { class: "bpk-pair" },
      h(
        "figure",
        { class: "bpk-figure" },
        h("div", { class: "bpk-canvas" }, canvas),
        h("div", { class: "bpk-ends" }, low, legend, high),
        h("figcaption", {}, h("div", { class: "bpk-row-of-controls" }, labelled("Colour range", clip), clipText), caption),
      ),
      h(
        "div",
        { class: "bpk-values" },
        h(
          "div",
          { class: "bpk-row-of-controls" },
          rank >= 2 && labelled("Row", row),
          labelled(rank >= 2 ? "Column" : "Element", column),
        ),
        table,
      ),
    ),
  );
}

/** @param {HTMLInputElement} field @param {number} count */
function clamped(field, count) {
  const value = Math.trunc(Number(field.value));
  return Number.isFinite(value) ? Math.max(0, Math.min(value, count - 1)) : 0;
}

/**
 * Which axis goes down, which goes across, and where the others stand.
 *
 * @param {number[]} shape
 * @param {[number, number]} start
 * @param {Record<number, number>} index Changed in place.
 * @param {(axes: [number, number]) => void} onChange
 */
function axisPickers(shape, start, index, onChange) {
  /** @type {[number, number]} */
  let axes = [...start];
  const choice = (/** @type {0 | 1} */ side) => {
    const select = h(
      "select",
      { class: "bpk-input" },
      ...shape.map((dim, axis) => h("option", { value: axis }, `${axis} (${dim})`)),
    );
    select.value = String(axes[side]);
    select.addEventListener("change", () => {
      const chosen = Number(select.value);
      // Choosing the other side's axis swaps the two.
      if (axes[1 - side] === chosen) axes[1 - side] = axes[side];
      axes[side] = chosen;
      selects.forEach((other, at) => {
        other.value = String(axes[at]);
      });
      showOthers();
      onChange([...axes]);
    });
    return select;
  };
  const selects = [choice(0), choice(1)];
  const others = shape.map((dim, axis) => {
    const field = h("input", { type: "number", min: 0, max: dim - 1, value: 0, class: "bpk-input" });
    field.addEventListener("input", () => {
      index[axis] = clamped(field, dim);
      onChange([...axes]);
    });
    return labelled(`Axis ${axis} at`, field);
  });
  const showOthers = () => {
    others.forEach((field, axis) => {
      field.hidden = axes.includes(axis);
      if (!axes.includes(axis)) index[axis] ??= 0;
      else delete index[axis];
      if (axes.includes(axis)) /** @type {HTMLInputElement} */ (field.querySelector("input")).value = "0";
    });
  };
  showOthers();
  return [labelled("Down: axis", selects[0]), labelled("Across: axis", selects[1]), ...others];
}

/**
 * @param {string[][]} rows
 * @param {number[]} corner
 * @param {number} rank
 */
function valueTable(rows, corner, rank) {
  return h(
    "table",
    { class: "bpk-table bpk-numbers" },
    h(
      "thead",
      {},
      h("tr", {}, rank >= 2 && h("td", {}), ...(rows[0] ?? []).map((_, at) => h("th", { scope: "col" }, corner[1] + at))),
    ),
    h(
      "tbody",
      {},
      ...rows.map((texts, at) =>
        h("tr", {}, rank >= 2 && h("th", { scope: "row" }, corner[0] + at), ...texts.map((text) => h("td", {}, text))),
      ),
    ),
  );
}
