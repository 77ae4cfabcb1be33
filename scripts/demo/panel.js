// SPDX-License-Identifier: Apache-2.0
// The demo's section of the dashboard, in the browser.
const REFRESH_MS = 1_000;

const title = document.getElementById('demo-title');
const text = document.getElementById('demo-text');
const look = document.getElementById('demo-look');
const actions = document.getElementById('demo-actions');
const token = document.getElementById('token');
const result = document.getElementById('result');

// The demo prints a link with the token in its fragment, which browsers send to no server.
const given = new URLSearchParams(location.hash.slice(1)).get('token');
if (given !== null) {
  token.value = given;
  history.replaceState(null, '', location.pathname);
}

async function act(name) {
  const response = await fetch(`/api/demo/${name}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token.value}` },
  }).catch(() => undefined);
  const answer = await response?.json().catch(() => undefined);
  result.textContent = answer?.message ?? answer?.error ?? 'The demo did not answer.';
}

function createButton({ name, label }) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = label;
  button.addEventListener('click', () => void act(name));
  return button;
}

function setText(element, value) {
  if (element.textContent !== value) element.textContent = value;
}

async function refresh() {
  const response = await fetch('/api/demo').catch(() => undefined);
  const panel = await response?.json().catch(() => undefined);
  if (panel === undefined) {
    setText(text, 'The demo has ended.');
    setText(look, '');
    actions.hidden = true;
    return;
  }
  setText(title, `Demo: ${panel.title}`);
  setText(text, panel.text);
  setText(look, panel.look === '' ? '' : `Look at: ${panel.look}`);
  if (actions.childElementCount === 0) actions.append(...panel.actions.map(createButton));
  actions.hidden = !panel.isIdle;
}

await refresh();
setInterval(() => void refresh(), REFRESH_MS);
