/**
 * Two colour scales of 256 steps: dark to light for values of one sign, two hues around zero for
 * values of both. Lightness grows or falls evenly, so both read without colour as well.
 */

/** Anchors in Oklab: lightness, green to red, blue to yellow. */
const ONE_SIGN = [
  [0.2, 0.02, -0.09],
  [0.4, -0.02, -0.11],
  [0.6, -0.09, -0.02],
  [0.78, -0.08, 0.08],
  [0.96, -0.02, 0.1],
];
const TWO_SIGNS = [
  [0.3, 0.0, -0.13],
  [0.6, -0.04, -0.12],
  [0.965, 0.0, 0.004],
  [0.66, 0.1, 0.11],
  [0.36, 0.11, 0.07],
];

/** Drawn for NaN: no scale has it. */
export const NO_NUMBER = 0xffc24bd1; // the bytes alpha, blue, green, red

/**
 * @param {boolean} twoSigns
 * @returns {Uint32Array} 256 pixels, as a canvas holds them on a little-endian machine.
 */
export function colourScale(twoSigns) {
  const anchors = twoSigns ? TWO_SIGNS : ONE_SIGN;
  return Uint32Array.from({ length: 256 }, (_, step) => {
    const place = (step / 255) * (anchors.length - 1);
    const from = Math.min(Math.floor(place), anchors.length - 2);
    const part = place - from;
    const [l, a, b] = anchors[from].map((value, at) => value + part * (anchors[from + 1][at] - value));
    return pixel(l, a, b);
  });
}

/** @param {number} lightness @param {number} a @param {number} b */
function pixel(lightness, a, b) {
  const long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const short = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const [red, green, blue] = [
    4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
    -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
    -0.0041960863 * long - 0.7034186147 * middle + 1.707614701 * short,
  ].map((linear) => {
    const light = Math.min(1, Math.max(0, linear));
    return Math.round(255 * (light <= 0.0031308 ? 12.92 * light : 1.055 * light ** (1 / 2.4) - 0.055));
  });
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/**
 * Colour values between two bounds; what lies beyond has the colour of its bound.
 *
 * @param {Float32Array} values
 * @param {number} low
 * @param {number} high
 * @param {Uint32Array} scale
 * @returns {Uint32Array<ArrayBuffer>}
 */
export function coloured(values, low, high, scale) {
  const pixels = new Uint32Array(values.length);
  const factor = high > low ? 255 / (high - low) : 0;
  const middle = high > low ? 0 : 127;
  for (let at = 0; at < values.length; at += 1) {
    const value = values[at];
    if (value !== value) pixels[at] = NO_NUMBER;
    else {
      const step = middle + (value - low) * factor;
      pixels[at] = scale[step > 255 || value === Infinity ? 255 : step < 0 || value === -Infinity ? 0 : step | 0];
    }
  }
  return pixels;
}

/**
 * The bounds that leave out a share of the values at either end.
 *
 * @param {Float32Array} values
 * @param {number} share Of each end, 0 to 0.5.
 * @returns {[number, number]} Both 0 if there is no finite value.
 */
export function bounds(values, share) {
  const most = 1 << 14;
  const step = Math.max(1, Math.floor(values.length / most));
  let [low, high] = [Infinity, -Infinity];
  /** @type {number[]} */
  const sample = [];
  for (let at = 0; at < values.length; at += 1) {
    const value = values[at];
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
    // An odd stride visits all columns of a picture whose width is a power of two.
    if (at % (step | 1) === 0) sample.push(value);
  }
  if (low > high) return [0, 0];
  if (share === 0 || !sample.length) return [low, high];
  const ordered = Float32Array.from(sample).sort();
  const at = Math.floor(share * (ordered.length - 1));
  return [ordered[at], ordered[ordered.length - 1 - at]];
}
