/** Sizes, counts and names as people read them. */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];
const LONGEST = 400;
// What a browser draws as nothing, or lets reorder its neighbours: controls, zero-width characters,
// direction marks, the byte-order mark, tags.
const UNSEEN =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\u{e0000}-\u{e0fff}]|\p{Surrogate}/gu;

/**
 * Bytes in binary units with three digits at most: "392 KiB".
 *
 * @param {number} count
 */
export function humanBytes(count) {
  let unit = 0;
  let size = count;
  while (size >= 1024 && unit < UNITS.length - 1) {
    size /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return `${Number(size.toFixed(digits))} ${UNITS[unit]}`;
}

/**
 * A count with its digits in groups: "1,234,567".
 *
 * @param {number} value
 */
export function grouped(value) {
  return Math.round(value).toLocaleString("en-US");
}

/**
 * A large count in short: "25.6 M"; up to 9,999 in full.
 *
 * @param {number} value
 */
export function humanCount(value) {
  if (value < 1e4) return grouped(value);
  for (const [size, sign] of /** @type {[number, string][]} */ ([[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "K"]])) {
    if (value >= size * 0.9995) return `${Number((value / size).toPrecision(3))} ${sign}`;
  }
  return grouped(value);
}

/**
 * "1 tensor", "2 tensors".
 *
 * @param {number} count
 * @param {string} noun
 */
export function plural(count, noun) {
  return `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/**
 * A number as short as tells it: whole ones in full, others with so many digits.
 *
 * @param {number | string | null | undefined} value Text, such as "nan" or a large integer, stays.
 * @param {number} [digits]
 */
export function number(value, digits = 6) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "string") return { nan: "NaN", inf: "∞", "-inf": "−∞" }[value] ?? value.replace("-", "−");
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return grouped(value).replace("-", "−");
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  const text = size >= 1e-4 && size < 1e7 ? String(Number(value.toPrecision(digits))) : value.toExponential(digits - 2);
  return text.replaceAll("-", "−");
}

/**
 * Text with everything escaped that would not be seen as itself, and cut where it is too long to
 * show.
 *
 * @param {string} text
 * @param {number} [longest]
 */
export function visible(text, longest = LONGEST) {
  const short = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return short.replace(UNSEEN, (char) => `\\u{${/** @type {number} */ (char.codePointAt(0)).toString(16)}}`);
}

/**
 * The name of a file without its folders.
 *
 * @param {string} path
 */
export function lastPart(path) {
  const parts = path.split(/[\\/]/).filter(Boolean);
  return parts.at(-1) ?? path;
}

/** @param {ArrayLike<number>} shape */
export function shapeText(shape) {
  return shape.length ? Array.from(shape).join(" × ") : "scalar";
}
