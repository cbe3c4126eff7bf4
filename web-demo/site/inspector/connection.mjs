/** The page's end of the worker: commands with answers, and the transport of the drawing modules. */

import { Calls } from "./drawing/protocol.mjs";

/** @import { Chosen, Target, Trouble } from "./messages.mjs" */
/** @import { Progress } from "../app/messages.mjs" */

/** A command that failed; `kind` says how, see `Trouble`. */
export class CommandTrouble extends Error {
  /** @param {Trouble} trouble */
  constructor({ kind, message }) {
    super(message);
    this.kind = kind;
  }
}

/**
 * @typedef {{
 *   progress: (progress: Progress) => void,
 *   ready: () => void,
 *   trouble: (trouble: { kind: string, file?: string, details: string }) => void,
 * }} Listeners
 */

/** Also tells, as an event `cancelled`, when work that was given up has stopped. */
export class Connection extends EventTarget {
  #worker;
  #last = 0;
  /** @type {Map<number, { resolve: (result: any) => void, reject: (reason: unknown) => void, piece?: (piece: any) => void }>} */
  #open = new Map();
  #calls;

  /** @param {Listeners} listeners */
  constructor(listeners) {
    super();
    this.#worker = new Worker(new URL("./worker.mjs", import.meta.url), { type: "module" });
    this.#calls = this.#newCalls();
    this.#worker.onmessage = ({ data }) => this.#receive(data, listeners);
    this.#worker.onerror = (event) => {
      event.preventDefault();
      listeners.trouble({ kind: "worker", details: event.message ?? "no message" });
    };
  }

  /** What the drawing modules ask by. Each file that was opened has one of its own. */
  get transport() {
    return this.#calls;
  }

  /**
   * @param {Chosen} source
   * @param {Chosen} [other]
   * @returns {Promise<{ name: string }>}
   */
  async open(source, other) {
    const result = await this.#command({ kind: "open", source, other });
    this.#calls = this.#newCalls();
    return result;
  }

  /**
   * @param {Target} to
   * @param {(piece: ArrayBuffer | [number, number]) => void} piece
   * @returns {Promise<{ notes: string[] }>}
   */
  convert(to, piece) {
    return this.#command({ kind: "convert", to }, piece);
  }

  /** @returns {Promise<{ bytes: number, reads: number }>} What has been read so far. */
  counted() {
    return this.#command({ kind: "counted" });
  }

  close() {
    this.#worker.terminate();
  }

  #newCalls() {
    /** @type {Calls} */
    const calls = new Calls((message) => {
      // What an earlier file's drawing still asks for would be answered about the next one.
      if (calls === this.#calls) this.#worker.postMessage({ type: "drawing", message });
    }, this.#calls?.last);
    return calls;
  }

  /** @param {object} command @param {(piece: any) => void} [piece] @returns {Promise<any>} */
  #command(command, piece) {
    this.#last += 1;
    const id = this.#last;
    return new Promise((resolve, reject) => {
      this.#open.set(id, { resolve, reject, piece });
      this.#worker.postMessage({ id, ...command });
    });
  }

  /** @param {any} message @param {Listeners} listeners */
  #receive(message, listeners) {
    const command = this.#open.get(message.id);
    switch (message.type) {
      case "drawing": {
        const answer = JSON.parse(message.text);
        if (answer.type === "cancelled") this.dispatchEvent(new Event("cancelled"));
        else this.#calls.receive(answer, message.buffers);
        return;
      }
      case "piece":
        command?.piece?.(message.piece);
        return;
      case "done":
        this.#open.delete(message.id);
        command?.resolve(message.result);
        return;
      case "failed":
        this.#open.delete(message.id);
        command?.reject(new CommandTrouble(message.trouble));
        return;
      case "progress":
        listeners.progress(message.progress);
        return;
      case "ready":
        listeners.ready();
        return;
      default:
        listeners.trouble(message.trouble);
    }
  }
}
