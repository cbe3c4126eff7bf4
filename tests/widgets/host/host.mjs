/** The page's end of `host.py`: a widget model as Jupyter has it, and anywidget's way to render. */

const comm = new URL(location.href).searchParams.get("comm");
/** @type {Record<string, unknown>} */
const state = {};
/** @type {Record<string, ((...values: any[]) => void)[]>} */
const listeners = {};
const changed = new Set();
window.sent = [];

const fire = (event, ...values) => [...(listeners[event] ?? [])].forEach((listener) => listener(...values));
const post = (data) => {
  window.sent.push(data);
  return fetch(`send?${comm}`, { method: "POST", body: JSON.stringify(data) });
};

const model = {
  get: (key) => state[key],
  set(key, value) {
    if (state[key] === value) return;
    state[key] = value;
    changed.add(key);
    fire(`change:${key}`);
  },
  save_changes() {
    const update = Object.fromEntries([...changed].map((key) => [key, state[key]]));
    changed.clear();
    post({ method: "update", state: update, buffer_paths: [] });
  },
  on: (event, listener) => (listeners[event] ??= []).push(listener),
  off(event, listener) {
    listeners[event] = (listeners[event] ?? []).filter((other) => listener && other !== listener);
  },
  send: (content) => post({ method: "custom", content }),
};

async function next() {
  const response = await fetch(`next?${comm}`);
  if (response.status !== 200) return null;
  const body = await response.arrayBuffer();
  const size = new DataView(body).getUint32(0, true);
  const message = JSON.parse(new TextDecoder().decode(new Uint8Array(body, 4, size)));
  let at = 4 + size;
  // As in Jupyter, buffers are views into the whole message.
  const buffers = message.sizes.map((length) => {
    at += length;
    return new DataView(body, at - length, length);
  });
  return { ...message, buffers };
}

async function open({ data }) {
  Object.assign(state, data.state);
  const style = document.createElement("style");
  style.textContent = state._css;
  document.head.append(style);
  const address = URL.createObjectURL(new Blob([state._esm], { type: "text/javascript" }));
  const { default: widget } = await import(address);
  window.started = performance.now();
  window.clean = widget.render({ model, el: document.getElementById("cell"), signal: new AbortController().signal });
}

for (let message = await next(); message; message = await next()) {
  const { data, type } = message;
  if (type === "comm_open") void open(message);
  else if (data.method === "custom") fire("msg:custom", data.content, message.buffers);
  else if (data.method === "update") {
    for (const [key, value] of Object.entries(data.state)) {
      state[key] = value;
      fire(`change:${key}`);
    }
  }
}
