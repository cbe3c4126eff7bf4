/** The Python that gives what is on the screen, to take along. */

import { h } from "./dom.mjs";

/**
 * How Python gets at the file, from `_subject.py`: `open` is an expression whose value has tensors
 * by name, for example `bpk.open("model.bpk")`; empty where the widget itself is the only way.
 *
 * @typedef {{ imports: string, open: string, item: string }} Source
 */

/**
 * A Python string literal. JSON's is one; what cannot be seen is escaped.
 *
 * @param {string} text
 */
export function literal(text) {
  return JSON.stringify(text).replace(
    /[\u007f-\u00a0\u00ad\u0600-\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff0-\uffff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/**
 * @param {Source} source
 * @param {string} name
 */
export function tensorSnippet(source, name) {
  return `${source.imports}\n\n${source.open}tensor = ${source.item.replace("{name}", () => literal(name))}`;
}

/**
 * One more line for the part of the tensor that is on the screen.
 *
 * @param {number[]} shape
 * @param {[number, number]} axes
 * @param {Record<number, number>} index
 */
export function sliceSnippet(shape, axes, index) {
  const fixed = shape.some((_, axis) => !axes.includes(axis));
  if (shape.length < 2 || (!fixed && axes[0] < axes[1])) return "\nvalues = tensor.numpy()";
  const keys = shape.map((_, axis) => (axes.includes(axis) ? ":" : String(index[axis] ?? 0)));
  const turned = axes[0] > axes[1] ? ".T" : "";
  return `\nvalues = tensor[${keys.join(", ")}]${turned}`;
}

/**
 * A block of code with a button that copies it.
 *
 * @param {(text: string) => void} say
 */
export function codeBlock(say) {
  const code = h("code", {});
  const copy = h("button", { type: "button", class: "bpk-button bpk-copy" }, "Copy");
  copy.addEventListener("click", async () => {
    say((await copyText(code.textContent ?? "")) ? "Copied" : "Could not copy; select the text instead");
  });
  const block = h("pre", { tabindex: 0, role: "region", "aria-label": "Python" }, code);
  return {
    element: h("div", { class: "bpk-code" }, block, copy),
    /** @param {string} text */
    set(text) {
      code.textContent = text;
    },
  };
}

/** @param {string} text @returns {Promise<boolean>} */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // No permission, or no secure context: an old way that still works there.
    const area = h("textarea", { class: "bpk-unseen", "aria-hidden": "true", tabindex: -1 });
    area.value = text;
    const focused = /** @type {HTMLElement | null} */ (document.activeElement);
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    focused?.focus();
    return done;
  }
}
