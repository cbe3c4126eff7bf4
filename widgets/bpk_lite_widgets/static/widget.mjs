/** The notebook's end: anywidget's `render`, with the model's messages as the transport. */

import { mount } from "./mount.mjs";
import { Calls } from "./protocol.mjs";

/**
 * The part of anywidget's model that is used here.
 *
 * @typedef {{
 *   get: (key: string) => any,
 *   set: (key: string, value: any) => void,
 *   save_changes: () => void,
 *   on: (event: string, listener: (...values: any[]) => void) => void,
 *   off: (event: string, listener?: (...values: any[]) => void) => void,
 *   send: (content: any) => void,
 * }} Model
 */

let views = 0;

/** @param {{ model: Model, el: HTMLElement }} context */
async function render({ model, el }) {
  // A widget may be shown several times; each view hears all messages and takes its own.
  views += 1;
  const view = `${views}-${Math.random().toString(36).slice(2)}`;
  const calls = new Calls((message) => model.send({ ...message, view }));
  const receive = (/** @type {any} */ message, /** @type {DataView[]} */ buffers) => {
    if (message.view === view) calls.receive(message, buffers);
  };
  model.on("msg:custom", receive);
  const set = (/** @type {Record<string, unknown>} */ values) => {
    const changed = Object.entries(values).filter(([key, value]) => model.get(key) !== value);
    for (const [key, value] of changed) model.set(key, value);
    if (changed.length) model.save_changes();
  };
  /** @type {import("./mount.mjs").Inspector | undefined} */
  let inspector;
  const follow = () => {
    inspector?.filter({ text: model.get("filter"), kind: model.get("filter_kind") });
    inspector?.choose(model.get("selected"));
  };
  const start = async () => {
    inspector?.destroy();
    inspector = await mount(el, calls, {
      onChoose: (name) => set({ selected: name }),
      onFilter: ({ text, kind }) => set({ filter: text, filter_kind: kind }),
    });
    follow();
  };
  const followed = ["change:selected", "change:filter", "change:filter_kind"];
  for (const event of followed) model.on(event, follow);
  await start();
  return () => {
    model.off("msg:custom", receive);
    for (const event of followed) model.off(event, follow);
    inspector?.destroy();
  };
}

export default { render };
