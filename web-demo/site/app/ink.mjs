/** Ink on a transparent ground: 0 to 255 becomes the alpha of black. Stylesheets invert it for the dark. */

/**
 * Put `ink` onto `canvas`, which has one pixel for each of its values.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {Uint8Array | number[]} ink Row by row; 255 is full ink.
 */
export function paintInk(canvas, ink) {
  const image = new ImageData(canvas.width, canvas.height);
  ink.forEach((value, place) => {
    image.data[4 * place + 3] = value;
  });
  /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")).putImageData(image, 0, 0);
}

/**
 * A canvas that is not part of the page.
 *
 * @param {number} width
 * @param {number} [height]
 */
export function newCanvas(width, height = width) {
  return Object.assign(document.createElement("canvas"), { width, height });
}
