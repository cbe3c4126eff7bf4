/**
 * What the page and its worker say to each other. Types only; there is nothing to run here.
 *
 * @typedef {{ name: string, loaded: number, total: number }} Progress
 *   Bytes of one file that have arrived. `total` is its size after decompression.
 *
 * @typedef {{ python: string, numpy: string, bpkLite: string }} Versions
 *
 * @typedef {{
 *   revision: number,
 *   probabilities: Float32Array,
 *   preview: Uint8Array,
 *   empty: boolean,
 *   milliseconds: number,
 * }} Answer
 *   What the network says of the drawing's state number `revision`: ten probabilities, the 28 × 28
 *   picture it was given (ink is 255), and how long Python took.
 *
 * @typedef {"download" | "damaged" | "start" | "model" | "worker"} TroubleKind
 * @typedef {{ kind: TroubleKind, file?: string, details: string }} Trouble
 *
 * @typedef {{ revision: number, pixels: Uint8Array<ArrayBuffer>, width: number, height: number }} Question
 *   A drawing: one byte per pixel, row by row, ink is 255.
 *
 * @typedef {{ type: "progress", progress: Progress }
 *   | { type: "ready", versions: Versions }
 *   | { type: "answer", answer: Answer }
 *   | { type: "trouble", trouble: Trouble, revision?: number }} FromWorker
 * @typedef {{ type: "classify", question: Question }} ToWorker
 */

export {};
