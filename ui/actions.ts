// SPDX-License-Identifier: Apache-2.0
// Requests that change something. They need the token, which is kept in memory only.
import { find, findInput, setText } from './dom.ts';

export async function requestAction(path: string, body?: object): Promise<void> {
  const token = findInput('token').value;
  const result = find('result');
  if (token === '') {
    setText(result, 'Enter the token first: it is in the file http.dashboardTokenFile.');
    find('token').focus();
    return;
  }
  setText(result, 'requesting…');
  try {
    const response = await fetch(`/api/v1/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const answer: { message?: string; error?: string; hint?: string } = await response.json();
    setText(result, answer.message ?? [answer.error, answer.hint].filter(Boolean).join('. '));
  } catch {
    setText(result, 'The server did not answer; nothing is known about the request.');
  }
}
