/**
 * What the drawing modules ask of whoever holds the file, and the bookkeeping both transports share.
 *
 * A notebook's kernel and a page's worker answer the same requests (`_session.py` says which). Here
 * each request has a number; its answer, its progress and its cancellation carry the same one.
 *
 * @typedef {{ data: any, buffers: ArrayBuffer[] }} Answer
 * @typedef {{ signal?: AbortSignal, onProgress?: (done: number, total: number) => void }} Wishes
 * @typedef {{ request: (kind: string, parameters?: object, wishes?: Wishes) => Promise<Answer> }} Transport
 */

/** A request that the other side could not fulfil; `kind` is the class of its error. */
export class Refusal extends Error {
  /**
   * @param {string} kind
   * @param {string} message
   */
  constructor(kind, message) {
    super(message);
    this.name = kind;
  }
}

/** @implements {Transport} */
export class Calls {
  #send;
  #last = 0;
  /** @type {Map<number, { resolve: (answer: Answer) => void, reject: (reason: unknown) => void, wishes: Wishes }>} */
  #open = new Map();

  /**
   * @param {(message: object) => void} send Takes a message to the other side.
   * @param {number} [last] The last number that is taken already.
   */
  constructor(send, last = 0) {
    this.#send = send;
    this.#last = last;
  }

  /** The number of the last request. */
  get last() {
    return this.#last;
  }

  /**
   * @param {string} kind
   * @param {object} [parameters]
   * @param {Wishes} [wishes]
   * @returns {Promise<Answer>} Rejected with an AbortError when the signal fires.
   */
  request(kind, parameters = {}, wishes = {}) {
    this.#last += 1;
    const id = this.#last;
    const { signal } = wishes;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      this.#open.set(id, { resolve, reject, wishes });
      signal?.addEventListener(
        "abort",
        () => {
          if (!this.#open.delete(id)) return;
          this.#send({ type: "cancel", id });
          reject(signal.reason);
        },
        { once: true },
      );
      this.#send({ type: "request", id, kind, ...parameters });
    });
  }

  /**
   * Take a message of the other side. What concerns a cancelled request is dropped.
   *
   * @param {any} message
   * @param {(ArrayBuffer | DataView)[]} [buffers]
   */
  receive(message, buffers = []) {
    const call = this.#open.get(message.id);
    if (!call) return;
    if (message.type === "progress") {
      call.wishes.onProgress?.(message.done, message.total);
      return;
    }
    this.#open.delete(message.id);
    if (message.type === "answer") call.resolve({ data: message.data, buffers: buffers.map(whole) });
    else call.reject(new Refusal(message.error.kind, message.error.message));
  }
}

/**
 * Hosts hand buffers out as views into larger messages, at any offset; typed arrays need their own.
 *
 * @param {ArrayBuffer | DataView} buffer
 * @returns {ArrayBuffer}
 */
function whole(buffer) {
  if (buffer instanceof ArrayBuffer) return buffer;
  const { byteOffset, byteLength } = buffer;
  const owner = /** @type {ArrayBuffer} */ (buffer.buffer);
  return byteOffset === 0 && byteLength === owner.byteLength
    ? owner
    : owner.slice(byteOffset, byteOffset + byteLength);
}
