/** What went wrong, in the visitor's words, with the details for whoever has to mend it. */

/** @import { Trouble } from "./messages.mjs" */

/** @type {Record<Trouble["kind"], (trouble: Trouble) => [string, string]>} */
const TEXTS = {
  download: ({ file }) => [
    "A file did not arrive",
    `${file} could not be loaded. Check the connection, then try again.`,
  ],
  damaged: ({ file }) => [
    "A file is not the right one",
    `${file} arrived damaged, or the site was changed while this page loaded. Trying again usually helps.`,
  ],
  start: () => [
    "Python did not start",
    "All files arrived, but Python could not be started in this browser. A current version of Chrome, Firefox or Safari is needed.",
  ],
  model: () => ["The network stopped", "It failed on this drawing. Change the drawing, or start again."],
  worker: () => [
    "The background worker failed",
    "Python runs in a worker, which ended or could not be started. Try again, or use a current browser.",
  ],
};

/**
 * @param {HTMLElement} box
 * @param {Trouble} trouble
 */
export function showTrouble(box, trouble) {
  const [title, text] = TEXTS[trouble.kind](trouble);
  const [heading, paragraph, details] = ["h2", "p", "pre"].map(
    (name) => /** @type {HTMLElement} */ (box.querySelector(name)),
  );
  heading.textContent = title;
  paragraph.textContent = text;
  details.textContent = trouble.details;
  box.hidden = false;
}
