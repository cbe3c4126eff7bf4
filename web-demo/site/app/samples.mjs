/** Real MNIST digits to click on: `samples.png` has ten columns, one per digit, of 28 × 28 tiles. */

import { newCanvas, paintInk } from "./ink.mjs";

const TILE = 28;

/**
 * Fill `strip` with one button per sample.
 *
 * @param {HTMLElement} strip
 * @param {(ink: Uint8Array, width: number) => void} choose Gets the pixels of the one chosen.
 */
export async function showSamples(strip, choose) {
  const response = await fetch(new URL("../samples.png", import.meta.url));
  if (!response.ok) throw new Error(`samples.png: the server answered ${response.status}`);
  const sheet = await createImageBitmap(await response.blob(), { colorSpaceConversion: "none" });
  const canvas = newCanvas(sheet.width, sheet.height);
  const context = /** @type {CanvasRenderingContext2D} */ (
    canvas.getContext("2d", { willReadFrequently: true })
  );
  context.drawImage(sheet, 0, 0);
  for (let y = 0; y < sheet.height; y += TILE) {
    for (let x = 0; x < sheet.width; x += TILE) {
      const rgba = context.getImageData(x, y, TILE, TILE).data;
      const ink = Uint8Array.from({ length: TILE * TILE }, (_, place) => rgba[4 * place]);
      strip.append(buttonFor(ink, x / TILE, () => choose(ink, TILE)));
    }
  }
}

/**
 * @param {Uint8Array} ink
 * @param {number} digit
 * @param {() => void} choose
 */
function buttonFor(ink, digit, choose) {
  const button = document.createElement("button");
  button.type = "button";
  button.setAttribute("aria-label", `Sample: a ${digit}`);
  const picture = newCanvas(TILE);
  paintInk(picture, ink);
  button.append(picture);
  button.addEventListener("click", choose);
  return button;
}
