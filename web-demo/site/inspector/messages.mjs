/**
 * What the inspector page and its worker say to each other. Types only; there is nothing to run.
 *
 * @typedef {{ file?: File, url?: string }} Chosen A local file, or an address.
 * @typedef {"burnpack" | "safetensors"} Target
 * @typedef {{ id: number, kind: "open", source: Chosen, other?: Chosen }
 *   | { id: number, kind: "convert", to: Target }
 *   | { id: number, kind: "counted" }} Command
 * @typedef {{ kind: string, message: string }} Trouble
 *   `kind` is `ranges`, `network`, `status`, `size`, `changed`, or the class of Python's error.
 */

export {};
