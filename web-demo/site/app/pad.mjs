/**
 * The canvas the visitor draws on: mouse, touch, stylus and keyboard, all to one Drawing.
 *
 * Pointers give every point between two frames (coalesced events), so a fast stroke stays round. The
 * keyboard moves a pen that is shown while the canvas has the focus; two arrows at once go diagonally.
 */

import { SIDE } from "./drawing.mjs";

/** @import { Drawing } from "./drawing.mjs" */

/** Units the keyboard's pen moves for each key press; with Shift a fine step. */
const STEP = 10;
const FINE_STEP = 3;

/** @type {Record<string, [number, number]>} */
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Pad {
  #canvas;
  #drawing;
  #announce;
  /** Where the keyboard's pen is. */
  #pen = { x: SIDE / 2, y: SIDE / 4 };
  /** @type {Set<string>} */
  #held = new Set();
  #showPen = false;
  /** @type {number | undefined} */
  #pointer;
  #frame = 0;

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {Drawing} drawing
   * @param {(text: string) => void} announce Told what a screen reader should say.
   */
  constructor(canvas, drawing, announce) {
    this.#canvas = canvas;
    this.#drawing = drawing;
    this.#announce = announce;
    drawing.addEventListener("change", () => this.repaint());
    new ResizeObserver(() => this.repaint()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
    canvas.addEventListener("pointerdown", (event) => this.#down(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    for (const type of /** @type {const} */ (["pointerup", "pointercancel", "lostpointercapture"])) {
      canvas.addEventListener(type, (event) => this.#up(event));
    }
    canvas.addEventListener("keydown", (event) => this.#key(event));
    canvas.addEventListener("keyup", (event) => this.#held.delete(event.key));
    canvas.addEventListener("focus", () => this.#focus(canvas.matches(":focus-visible")));
    canvas.addEventListener("blur", () => this.#focus(false));
  }

  /** Paint at the next frame, once, however often it is asked for. */
  repaint() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#paint();
    });
  }

  #paint() {
    const side = Math.round(this.#canvas.clientWidth * devicePixelRatio);
    if (this.#canvas.width !== side || this.#canvas.height !== side) {
      this.#canvas.width = side;
      this.#canvas.height = side;
    }
    const style = getComputedStyle(this.#canvas);
    const context = /** @type {CanvasRenderingContext2D} */ (this.#canvas.getContext("2d"));
    this.#drawing.paint(context, side, style.color);
    if (!this.#showPen) return;
    context.beginPath();
    context.arc(this.#pen.x, this.#pen.y, 11, 0, 2 * Math.PI);
    context.lineWidth = 3;
    context.strokeStyle = style.getPropertyValue("--accent");
    context.fillStyle = style.getPropertyValue("--accent");
    if (this.#drawing.drawing) context.fill();
    context.stroke();
  }

  /** @param {boolean} visible */
  #focus(visible) {
    this.#showPen = visible;
    this.#held.clear();
    if (!visible && this.#pointer === undefined) this.#drawing.end();
    this.repaint();
  }

  /**
   * @param {PointerEvent} event
   * @returns {[number, number]}
   */
  #place(event) {
    const box = this.#canvas.getBoundingClientRect();
    return [
      ((event.clientX - box.left) * SIDE) / box.width,
      ((event.clientY - box.top) * SIDE) / box.height,
    ];
  }

  /** @param {PointerEvent} event */
  #down(event) {
    if (event.button !== 0 || this.#pointer !== undefined) return;
    this.#pointer = event.pointerId;
    this.#canvas.setPointerCapture(event.pointerId);
    this.#showPen = false;
    this.#drawing.begin(...this.#place(event));
  }

  /** @param {PointerEvent} event */
  #move(event) {
    if (event.pointerId !== this.#pointer) return;
    const between = event.getCoalescedEvents?.() ?? [];
    const events = between.length > 0 ? between : [event];
    this.#drawing.extend(events.map((each) => this.#place(each)));
  }

  /** @param {PointerEvent} event */
  #up(event) {
    if (event.pointerId !== this.#pointer) return;
    this.#pointer = undefined;
    this.#drawing.end();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in ARROWS) {
      this.#held.add(event.key);
      this.#step(event.shiftKey ? FINE_STEP : STEP);
    } else if (event.key === " ") {
      if (!event.repeat) this.#togglePen();
    } else if (event.key === "Delete" || event.key === "Backspace") {
      this.#drawing.clear();
    } else {
      return;
    }
    event.preventDefault();
    this.#showPen = true;
    this.repaint();
  }

  /** @param {number} length */
  #step(length) {
    for (const key of this.#held) {
      const [x, y] = ARROWS[key];
      this.#pen.x = Math.min(SIDE, Math.max(0, this.#pen.x + x * length));
      this.#pen.y = Math.min(SIDE, Math.max(0, this.#pen.y + y * length));
    }
    this.#drawing.extend([[this.#pen.x, this.#pen.y]]);
  }

  #togglePen() {
    if (this.#drawing.drawing) this.#drawing.end();
    else this.#drawing.begin(this.#pen.x, this.#pen.y);
    this.#announce(this.#drawing.drawing ? "Pen down" : "Pen up");
  }
}
