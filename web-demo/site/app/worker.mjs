/**
 * Python, away from the page's own thread: starts it, then classifies one drawing per message.
 *
 * Python owns one buffer for the drawing, of the size last asked for. A message's pixels are copied
 * into it (there is no sharing memory between the two), and the model reads it in place. Every proxy
 * of a Python object is destroyed: a forgotten one keeps its object alive.
 */

import { boot, FileTrouble } from "./runtime.mjs";

/** @import { Answer, FromWorker, Question, ToWorker, Trouble, Versions } from "./messages.mjs" */

const VERSIONS = `
import platform, numpy, bpk_lite
[platform.python_version(), numpy.__version__, bpk_lite.__version__]
`;

/** @type {{ python: any, module: any, canvas: any, size: number } | undefined} */
let demo;

/** @param {FromWorker} message @param {Transferable[]} [transfer] */
function post(message, transfer = []) {
  self.postMessage(message, { transfer });
}

async function start() {
  const python = await boot(new URL("../", import.meta.url), ["bpk-lite-mnist-demo"], (progress) =>
    post({ type: "progress", progress }),
  );
  demo = { python, module: python.pyimport("mnist_demo"), canvas: undefined, size: 0 };
  // The first drawing is classified here, so that the visitor's first stroke finds all of it awake.
  classify({ revision: 0, pixels: new Uint8Array(28 * 28).fill(255, 300, 308), width: 28, height: 28 });
  const versions = python.runPython(VERSIONS);
  const [pythonVersion, numpy, bpkLite] = versions.toJs();
  versions.destroy();
  post({
    type: "ready",
    versions: { python: pythonVersion, numpy, bpkLite },
  });
}

/**
 * @param {Question} question
 * @returns {Answer}
 */
function classify({ revision, pixels, width, height }) {
  if (!demo) throw new Error("a drawing came before Python was ready");
  if (demo.size !== pixels.length) {
    demo.canvas?.destroy();
    demo.canvas = demo.python.runPython(`bytearray(${pixels.length})`);
    demo.size = pixels.length;
  }
  const target = demo.canvas.getBuffer("u8");
  try {
    target.data.set(pixels);
  } finally {
    target.release();
  }
  const result = demo.module.classify(demo.canvas, width, height);
  try {
    return {
      revision,
      probabilities: new Float32Array(copyOut(result.probabilities, "f32")),
      preview: new Uint8Array(copyOut(result.preview, "u8")),
      empty: result.empty,
      milliseconds: result.milliseconds,
    };
  } finally {
    result.destroy();
  }
}

/**
 * Copy a contiguous numpy array out of Python and let go of it.
 *
 * @param {any} array
 * @param {"u8" | "f32"} type
 */
function copyOut(array, type) {
  const view = array.getBuffer(type);
  try {
    return view.data.slice();
  } finally {
    view.release();
    array.destroy();
  }
}

/**
 * @param {Trouble["kind"]} kind
 * @param {unknown} error
 * @returns {Trouble}
 */
function describe(kind, error) {
  if (error instanceof FileTrouble) {
    return { kind: error.kind, file: error.file, details: error.message };
  }
  return { kind, details: error instanceof Error ? error.message : String(error) };
}

self.onmessage = (/** @type {MessageEvent<ToWorker>} */ event) => {
  const { question } = event.data;
  try {
    const answer = classify(question);
    post({ type: "answer", answer }, [answer.probabilities.buffer, answer.preview.buffer]);
  } catch (error) {
    post({ type: "trouble", trouble: describe("model", error), revision: question.revision });
  }
};

start().catch((error) => post({ type: "trouble", trouble: describe("start", error) }));
