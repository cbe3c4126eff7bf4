/** Elements without markup: text goes in as text, so nothing in a file's names can become an element. */

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Make an HTML element.
 *
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, unknown>} [attributes] Set as attributes; true is an empty one, false and
 *   undefined are left out; a function under `onclick` and the like becomes a listener.
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function h(tag, attributes = {}, ...children) {
  return /** @type {any} */ (fill(document.createElement(tag), attributes, children));
}

/**
 * Make an SVG element.
 *
 * @param {string} tag
 * @param {Record<string, unknown>} [attributes]
 * @param {...Child} children
 */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/**
 * @template {Element} E
 * @param {E} element
 * @param {Record<string, unknown>} attributes
 * @param {Child[]} children
 */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    } else if (value !== false && value !== undefined && value !== null) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) {
      element.append(child instanceof Node ? child : String(child));
    }
  }
  return element;
}

let last = 0;

/** An id that no other element of the document has. */
export function freshId() {
  last += 1;
  return `bpk-${last}-${Math.random().toString(36).slice(2, 8)}`;
}

/**
 * A control with its label before it.
 *
 * @param {string} text
 * @param {HTMLElement} control
 * @param {string} [className]
 */
export function labelled(text, control, className = "") {
  control.id ||= freshId();
  return h(
    "div",
    { class: `bpk-field ${className}` },
    h("label", { for: control.id }, text),
    control,
  );
}
