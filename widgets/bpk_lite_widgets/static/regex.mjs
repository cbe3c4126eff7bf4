/**
 * Test names against a regular expression that anyone may have typed, without ever hanging.
 *
 * `(a+)+$` takes longer than anyone lives, and a thread that runs it cannot be interrupted. So it
 * runs in a worker, which is ended at a deadline. Where the host's policy allows no worker, only
 * expressions run that cannot explode: no repeated groups, no back references, three open-ended
 * repetitions at most, on names of 300 characters at most, and the clock is looked at in between.
 */

import { work } from "./regex-work.mjs";

const DEADLINE = 800; // milliseconds, for all names
const START = 4000; // for a worker to start
const LONGEST = 300;

/** An expression that is none, or takes too long. The message is for people. */
export class RegexTrouble extends Error {}

export class RegexFilter {
  #nameBytes;
  #names;
  #makeWorker;
  /** @type {Promise<Worker | null> | null} */
  #worker = null;
  #turn = Promise.resolve();

  /**
   * @param {string[]} names
   * @param {ArrayBuffer} nameBytes The same as JSON in UTF-8; copied to the worker.
   * @param {() => Worker} [makeWorker] How to start the worker; from a Blob if not given.
   */
  constructor(names, nameBytes, makeWorker = blobWorker) {
    this.#names = names;
    this.#nameBytes = nameBytes;
    this.#makeWorker = makeWorker;
  }

  /**
   * @param {string} source
   * @param {string} flags
   * @returns {Promise<Uint32Array>} The indices of the names that match.
   * @throws {RegexTrouble}
   */
  match(source, flags) {
    // One at a time: an answer belongs to the question before it.
    const answer = this.#turn.then(() => this.#match(source, flags));
    this.#turn = answer.then(
      () => {},
      () => {},
    );
    return answer;
  }

  /** End the worker. */
  close() {
    const running = this.#worker;
    this.#worker = null;
    void running?.then((worker) => worker?.terminate());
  }

  /** @param {string} source @param {string} flags */
  async #match(source, flags) {
    try {
      new RegExp(source, flags);
    } catch (error) {
      throw new RegexTrouble(error instanceof Error ? error.message : String(error));
    }
    this.#worker ??= start(this.#makeWorker, this.#nameBytes);
    const worker = await this.#worker;
    if (!worker) return matchHere(this.#names, source, flags);
    try {
      return await ask(worker, { source, flags }, DEADLINE, "matches");
    } catch (error) {
      this.close();
      throw error;
    }
  }
}

/**
 * @param {() => Worker} makeWorker
 * @param {ArrayBuffer} nameBytes
 * @returns {Promise<Worker | null>} Null where no worker may be started.
 */
async function start(makeWorker, nameBytes) {
  try {
    const worker = makeWorker();
    await ask(worker, { names: nameBytes }, START, "ready");
    return worker;
  } catch {
    return null;
  }
}

function blobWorker() {
  const address = URL.createObjectURL(new Blob([`(${work})(self)`], { type: "text/javascript" }));
  try {
    return new Worker(address);
  } finally {
    setTimeout(() => URL.revokeObjectURL(address), START);
  }
}

/**
 * @param {Worker} worker
 * @param {object} question
 * @param {number} deadline
 * @param {string} field
 * @returns {Promise<any>}
 */
function ask(worker, question, deadline, field) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      worker.terminate();
      reject(new RegexTrouble("this expression takes too long on these names"));
    }, deadline);
    worker.onmessage = ({ data }) => {
      clearTimeout(timer);
      resolve(data[field]);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      clearTimeout(timer);
      worker.terminate();
      reject(new RegexTrouble("the expression could not be run"));
    };
    worker.postMessage(question);
  });
}

/** @param {string[]} names @param {string} source @param {string} flags */
function matchHere(names, source, flags) {
  if (!isTame(source)) {
    throw new RegexTrouble(
      "this page may start no worker, so only simple expressions run: " +
        "no repeated groups, no back references, at most three of * + {n,}",
    );
  }
  const pattern = new RegExp(source, flags);
  const end = performance.now() + DEADLINE;
  const found = [];
  for (let index = 0; index < names.length; index += 1) {
    if (names[index].length <= LONGEST && pattern.test(names[index])) found.push(index);
    if ((index & 63) === 0 && performance.now() > end) {
      throw new RegexTrouble("this expression takes too long on these names");
    }
  }
  return Uint32Array.from(found);
}

/**
 * Whether an expression cannot take more than a small power of a name's length.
 *
 * @param {string} source
 */
export function isTame(source) {
  const plain = source.replace(/\\[^1-9k]/gu, "x").replace(/\[[^\]]*\]/g, "x");
  if (/\\[1-9k]/.test(plain) || /\)[*+{]/.test(plain)) return false;
  return (plain.match(/[*+]|\{\d+,/g) ?? []).length <= 3;
}
