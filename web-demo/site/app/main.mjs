/** The page: ties the drawing, the pad, the worker and the views together. */

import { Classifier } from "./classifier.mjs";
import { Drawing, SIDE } from "./drawing.mjs";
import { LoadingView } from "./loading.mjs";
import { keepForOffline } from "./offline.mjs";
import { Pad } from "./pad.mjs";
import { INVITATION, ResultView } from "./result.mjs";
import { showSamples } from "./samples.mjs";
import { showTrouble } from "./trouble.mjs";

/**
 * @template {typeof HTMLElement} T
 * @param {string} id
 * @param {T} type
 * @returns {InstanceType<T>}
 */
function element(id, type) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${type.name} #${id}`);
  return /** @type {InstanceType<T>} */ (found);
}

/** What the visitor has drawn. Exported for the tests, which draw MNIST's own images. */
export const drawing = new Drawing();

const undo = element("undo", HTMLButtonElement);
const clear = element("clear", HTMLButtonElement);
const hint = element("hint", HTMLElement);
const page = document.documentElement;

const result = new ResultView({
  digit: element("digit", HTMLElement),
  sentence: element("sentence", HTMLElement),
  spoken: element("spoken", HTMLElement),
  timing: element("timing", HTMLElement),
  preview: element("preview", HTMLCanvasElement),
  bars: element("bars", HTMLElement),
});
const loading = new LoadingView({
  total: element("loaded", HTMLProgressElement),
  list: element("files", HTMLElement),
  summary: element("summary", HTMLElement),
});
const trouble = element("trouble", HTMLElement);
const offline = element("offline", HTMLElement);

page.dataset.state = "loading";
const classifier = new Classifier({
  progress: (progress) => loading.update(progress),
  ready(versions) {
    page.dataset.state = "ready";
    loading.finish(performance.mark("ready").startTime, versions);
    result.say(drawing.empty ? INVITATION : "");
    ask();
    void keepForOffline((text) => {
      offline.textContent = text;
    });
  },
  answer(answer) {
    trouble.hidden = true;
    result.show(answer, !drawing.drawing);
  },
  trouble(what) {
    if (page.dataset.state === "loading") {
      page.dataset.state = "failed";
      loading.stop();
    }
    result.say("");
    showTrouble(trouble, what);
  },
});

function ask() {
  classifier.ask({
    revision: drawing.revision,
    pixels: drawing.pixels(),
    width: SIDE,
    height: SIDE,
  });
}

let asked = 0;
drawing.addEventListener("change", () => {
  undo.disabled = !drawing.canUndo;
  clear.disabled = drawing.empty;
  hint.hidden = !drawing.empty;
  // Once a frame is as often as anyone can see, however fast the pointer moves.
  asked ||= requestAnimationFrame(() => {
    asked = 0;
    ask();
  });
});

new Pad(element("pad", HTMLCanvasElement), drawing, (text) => {
  element("pen", HTMLElement).textContent = text;
});
undo.addEventListener("click", () => drawing.undo());
clear.addEventListener("click", () => drawing.clear());
element("again", HTMLButtonElement).addEventListener("click", () => location.reload());
window.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === "z") {
    event.preventDefault();
    drawing.undo();
  }
});
showSamples(element("samples", HTMLElement), (ink, width) => drawing.show(ink, width)).catch((error) =>
  console.warn("the samples cannot be shown:", error),
);
