/**
 * The page's end of the worker: asks about the latest drawing, never queues more than one.
 *
 * A drawing changes faster than the network answers. While a question is out, a newer one replaces
 * the one that waits, so an answer is at most two runs behind the pen.
 */

/** @import { Answer, FromWorker, Progress, Question, Trouble, Versions } from "./messages.mjs" */

/**
 * @typedef {{
 *   progress: (progress: Progress) => void,
 *   ready: (versions: Versions) => void,
 *   answer: (answer: Answer) => void,
 *   trouble: (trouble: Trouble) => void,
 * }} Listeners
 */

export class Classifier {
  /** @type {Worker} */
  #worker;
  /** @type {Listeners} */
  #listeners;
  /** @type {Question | undefined} */
  #waiting;
  /** True until the worker is ready, and while a question is out. */
  #busy = true;

  /**
   * Start the worker. Questions may be asked at once; the latest is sent when it is ready.
   *
   * @param {Listeners} listeners
   */
  constructor(listeners) {
    this.#listeners = listeners;
    this.#worker = new Worker(new URL("./worker.mjs", import.meta.url), { type: "module" });
    this.#worker.onmessage = (event) => this.#receive(event.data);
    this.#worker.onerror = (event) => {
      event.preventDefault();
      const details = event.message ? `${event.message} (${event.filename}:${event.lineno})` : "no message";
      listeners.trouble({ kind: "worker", details });
    };
    this.#worker.onmessageerror = () =>
      listeners.trouble({ kind: "worker", details: "a message could not be read" });
  }

  /** @param {Question} question Its pixels are handed over: do not use them afterwards. */
  ask(question) {
    this.#waiting = question;
    this.#next();
  }

  #next() {
    if (this.#busy || !this.#waiting) return;
    const question = this.#waiting;
    this.#waiting = undefined;
    this.#busy = true;
    this.#worker.postMessage({ type: "classify", question }, [question.pixels.buffer]);
  }

  /** @param {FromWorker} message */
  #receive(message) {
    switch (message.type) {
      case "progress":
        this.#listeners.progress(message.progress);
        return;
      case "ready":
        this.#listeners.ready(message.versions);
        break;
      case "answer":
        this.#listeners.answer(message.answer);
        break;
      case "trouble":
        this.#listeners.trouble(message.trouble);
        if (message.revision === undefined) return; // it never started
        break;
    }
    this.#busy = false;
    this.#next();
  }
}
