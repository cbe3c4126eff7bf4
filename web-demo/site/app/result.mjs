/** The network's answer: the digit, a sentence, ten bars and the picture it was given. */

import { paintInk } from "./ink.mjs";

/** @import { Answer } from "./messages.mjs" */

/** Above this the sentence is plain, below it names the second guess too. */
const CONFIDENT = 0.8;

/** Said while there is nothing to read. */
export const INVITATION = "Draw a digit from 0 to 9";

export class ResultView {
  #digit;
  #sentence;
  #spoken;
  #timing;
  #preview;
  #rows;

  /**
   * @param {{
   *   digit: HTMLElement, sentence: HTMLElement, spoken: HTMLElement, timing: HTMLElement,
   *   preview: HTMLCanvasElement, bars: HTMLElement,
   * }} elements `spoken` says the sentence to screen readers.
   */
  constructor({ digit, sentence, spoken, timing, preview, bars }) {
    this.#digit = digit;
    this.#sentence = sentence;
    this.#spoken = spoken;
    this.#timing = timing;
    this.#preview = preview;
    this.#rows = Array.from({ length: 10 }, (_, value) => barFor(value));
    bars.replaceChildren(...this.#rows.map(({ row }) => row));
  }

  /**
   * @param {Answer} answer
   * @param {boolean} settled False while the pen is down: nothing is then spoken, or a screen reader
   *   would talk through the whole stroke.
   */
  show(answer, settled) {
    const { probabilities, empty, milliseconds } = answer;
    const order = Array.from(probabilities.keys()).sort((a, b) => probabilities[b] - probabilities[a]);
    this.#rows.forEach(({ row, fill, percent }, value) => {
      const share = empty ? 0 : probabilities[value];
      row.classList.toggle("best", !empty && value === order[0]);
      fill.style.setProperty("transform", `scaleX(${share.toFixed(4)})`);
      percent.textContent = empty ? "" : asPercent(share);
    });
    this.#digit.textContent = empty ? "" : String(order[0]);
    this.#sentence.textContent = empty ? INVITATION : sentenceFor(probabilities, order);
    this.#timing.textContent = empty ? "" : `answered in ${milliseconds.toFixed(1)} ms`;
    if (settled) this.#spoken.textContent = this.#sentence.textContent;
    paintInk(this.#preview, answer.preview);
    this.#digit.dataset.revision = String(answer.revision);
  }

  /** @param {string} text */
  say(text) {
    this.#sentence.textContent = text;
    this.#spoken.textContent = text;
  }
}

/** @param {number} value */
function barFor(value) {
  const row = document.createElement("li");
  const [name, track, fill, percent] = ["b", "span", "i", "span"].map((tag) => document.createElement(tag));
  name.textContent = String(value);
  track.className = "track";
  percent.className = "percent";
  track.append(fill);
  row.append(name, track, percent);
  return { row, fill, percent };
}

/** @param {number} share */
function asPercent(share) {
  if (share > 0 && share < 0.001) return "<0.1\u00a0%";
  return `${(100 * share).toFixed(1)}\u00a0%`;
}

/**
 * @param {Float32Array} probabilities
 * @param {number[]} order Digits, most probable first.
 */
function sentenceFor(probabilities, [first, second]) {
  const share = Math.floor(100 * probabilities[first]);
  const sure = share >= 99 ? "over\u00a099" : String(share);
  if (probabilities[first] >= CONFIDENT) return `It is ${withArticle(first)}, ${sure}\u00a0% sure`;
  return `Perhaps ${withArticle(first)}, or ${withArticle(second)}`;
}

/** @param {number} digit */
function withArticle(digit) {
  return `${digit === 8 ? "an" : "a"} ${digit}`;
}
