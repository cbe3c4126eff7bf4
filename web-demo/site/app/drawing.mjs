/**
 * What has been drawn, as a value: strokes and pictures on a square of SIDE × SIDE units.
 *
 * The same drawing is painted twice: sharp and in the page's colours for the visitor, and as plain
 * coverage (ink is 255) for the network. Undo keeps the earlier lists; the items in them never change
 * once their stroke has ended.
 */

import { newCanvas, paintInk } from "./ink.mjs";

/** The side of the square, and of the picture the network is asked about. */
export const SIDE = 280;

/** A pen that leaves strokes about as thick as MNIST's once a digit is scaled down. */
const PEN = 22;

/**
 * @typedef {{ kind: "stroke", points: [number, number][] }} Stroke
 * @typedef {{ kind: "picture", mask: HTMLCanvasElement }} Picture  Coverage in its alpha channel.
 * @typedef {CanvasRenderingContext2D} Context
 */

/** Dispatches "change" when anything but the look changed. */
export class Drawing extends EventTarget {
  /** @type {(Stroke | Picture)[]} */
  #items = [];
  /** @type {(Stroke | Picture)[][]} */
  #past = [];
  /** @type {Stroke | undefined} */
  #open;
  /** Counts the changes, so that an answer can be matched with what was asked. */
  revision = 0;

  get empty() {
    return this.#items.length === 0;
  }

  get canUndo() {
    return this.#past.length > 0;
  }

  /** True while the pen is down. */
  get drawing() {
    return this.#open !== undefined;
  }

  /** @param {number} x @param {number} y */
  begin(x, y) {
    this.end();
    this.#open = { kind: "stroke", points: [[x, y]] };
    this.#become([...this.#items, this.#open]);
  }

  /** @param {[number, number][]} points */
  extend(points) {
    if (!this.#open || points.length === 0) return;
    this.#open.points.push(...points);
    this.#changed();
  }

  end() {
    if (!this.#open) return;
    this.#open = undefined;
    this.#changed();
  }

  /**
   * Replace the drawing by a picture that fills the square.
   *
   * @param {Uint8Array | number[]} ink One byte per pixel, row by row, ink is 255.
   * @param {number} width
   */
  show(ink, width) {
    this.#open = undefined;
    const mask = newCanvas(width, ink.length / width);
    paintInk(mask, ink);
    this.#become([{ kind: "picture", mask }]);
  }

  clear() {
    this.#open = undefined;
    if (!this.empty) this.#become([]);
  }

  undo() {
    const before = this.#past.pop();
    if (!before) return;
    this.#open = undefined;
    this.#items = before;
    this.#changed();
  }

  /** @param {(Stroke | Picture)[]} items */
  #become(items) {
    this.#past.push(this.#items);
    this.#items = items;
    this.#changed();
  }

  #changed() {
    this.revision += 1;
    this.dispatchEvent(new Event("change"));
  }

  /**
   * Paint everything onto a cleared context of `size` × `size` pixels.
   *
   * @param {Context} context
   * @param {number} size
   * @param {string} colour
   */
  paint(context, size, colour) {
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, size, size);
    context.scale(size / SIDE, size / SIDE);
    context.lineCap = "round";
    context.lineJoin = "round";
    context.lineWidth = PEN;
    context.strokeStyle = colour;
    context.imageSmoothingQuality = "high";
    for (const item of this.#items) {
      if (item.kind === "picture") context.drawImage(tinted(item.mask, colour), 0, 0, SIDE, SIDE);
      else paintStroke(context, item.points);
    }
  }

  /**
   * The drawing as the network gets it: SIDE × SIDE bytes, ink is 255.
   *
   * @returns {Uint8Array<ArrayBuffer>}
   */
  pixels() {
    const context = /** @type {Context} */ (raster.getContext("2d", { willReadFrequently: true }));
    this.paint(context, SIDE, "#000");
    const rgba = context.getImageData(0, 0, SIDE, SIDE).data;
    return Uint8Array.from({ length: SIDE * SIDE }, (_, place) => rgba[4 * place + 3]);
  }
}

const raster = newCanvas(SIDE);

/**
 * A smooth line: through the middle of each two points, bent by the points themselves.
 *
 * @param {Context} context
 * @param {[number, number][]} points
 */
function paintStroke(context, points) {
  const [[startX, startY]] = points;
  context.beginPath();
  context.moveTo(startX, startY);
  for (let place = 1; place < points.length - 1; place += 1) {
    const [x, y] = points[place];
    const [nextX, nextY] = points[place + 1];
    context.quadraticCurveTo(x, y, (x + nextX) / 2, (y + nextY) / 2);
  }
  const [endX, endY] = points[points.length - 1];
  // A line without any length is not drawn at all, and a dot is one.
  context.lineTo(endX + 0.01, endY);
  context.stroke();
}

/**
 * @param {HTMLCanvasElement} mask
 * @param {string} colour
 */
function tinted(mask, colour) {
  const copy = newCanvas(mask.width, mask.height);
  const context = /** @type {Context} */ (copy.getContext("2d"));
  context.drawImage(mask, 0, 0);
  context.globalCompositeOperation = "source-in";
  context.fillStyle = colour;
  context.fillRect(0, 0, copy.width, copy.height);
  return copy;
}
