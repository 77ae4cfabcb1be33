// SPDX-License-Identifier: Apache-2.0
// Parsing of requests: what the server refuses before it looks up the endpoint, and how path, query and body
// become parameters.
import { Buffer } from 'node:buffer';
import { ApiError } from '../api-error.ts';
import type { Upload } from '../core.ts';
import type { Params } from '../schema/verify.ts';
import { decodeForm, decodeJson, decodeMultipart, parseBoundary, unescapeBytes } from './decode.ts';
import {
  formatReasonPhrase,
  reasonOnlyResponse,
  type SimRequest,
  type SimResponse,
} from './messages.ts';

const METHODS = ['GET', 'POST', 'PUT', 'DELETE'];
const MAX_BODY_BYTES = 512 * 1024;
const BODY_TYPES = ['', 'application/x-www-form-urlencoded', 'application/json'];
export const UPLOAD_PATH = /^\/nodes\/([^/]+)\/storage\/([^/]+)\/upload$/;

export type Format = 'json' | 'extjs' | 'other';

export interface IncomingRequest {
  readonly request: SimRequest;
  readonly entryHost: string;
  readonly format: Format;
  readonly path: string;
  readonly query: string;
}

/** Thrown to end the pipeline with a response. */
export class EarlyResponse extends Error {
  readonly response: SimResponse;

  constructor(response: SimResponse) {
    super(response.reason);
    this.response = response;
  }
}

function rejectRequest(status: number, text: string): never {
  throw new EarlyResponse(reasonOnlyResponse(status, text));
}

function checkTransport(request: SimRequest): void {
  const { method } = request;
  if (!METHODS.includes(method)) rejectRequest(501, `method '${method}' not available`);
  const encoding = request.headers?.['transfer-encoding'];
  if (encoding === undefined) return;
  if (encoding.toLowerCase() === 'chunked')
    rejectRequest(501, 'chunked transfer encoding not supported');
  rejectRequest(501, `Unknown transfer encoding '${encoding}'`);
}

export function parseTarget(request: SimRequest, entryHost: string): IncomingRequest {
  checkTransport(request);
  const [rawPath = '', query = ''] = request.target.split(/\?(.*)/s);
  const whole = unescapeBytes(rawPath);
  if (!whole.startsWith('/api2')) rejectRequest(501, `no such file '${whole}'`);
  const match = /^\/api2\/+(html|text|json|extjs|png|htmljs|spiceconfig)(\/.*)?$/s.exec(whole);
  if (match === null) return rejectRequest(501, 'no such uri');
  const format = match[1] === 'json' || match[1] === 'extjs' ? match[1] : 'other';
  return { request, entryHost, format, path: match[2] ?? '/', query };
}

function bytesOf(body: Uint8Array | string | undefined): Uint8Array {
  if (body === undefined) return new Uint8Array();
  return typeof body === 'string' ? Buffer.from(body, 'utf8') : body;
}

function bodyParams(body: Uint8Array, kind: string): Params {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8');
  if (kind !== 'application/json') return decodeForm(text);
  try {
    return decodeJson(text);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const { status, message } = error;
    const headers = { 'content-type': 'text/plain' };
    throw new EarlyResponse({
      status,
      reason: formatReasonPhrase(status, message),
      headers,
      body: message,
    });
  }
}

export interface RequestBody {
  readonly params: Params;
  readonly upload: Upload | undefined;
}

let uploads = 0;

function readUpload(body: Uint8Array, contentType: string | undefined, query: string): RequestBody {
  const boundary = parseBoundary(contentType);
  if (boundary === undefined) {
    return rejectRequest(501, `upload 'Content-Type '${contentType ?? ''}' not implemented`);
  }
  uploads += 1;
  const tmpName = `/var/tmp/pveupload-${uploads.toString(16).padStart(32, '0')}`;
  try {
    const { fields, fileName, bytes } = decodeMultipart(body, boundary);
    const params = { ...decodeForm(query), ...fields, filename: fileName };
    return { params, upload: { bytes: Uint8Array.from(bytes), tmpName } };
  } catch (error) {
    if (error instanceof ApiError) return rejectRequest(error.status, error.message);
    throw error;
  }
}

function checkBody(incoming: IncomingRequest, length: number, kind: string): void {
  const { method, headers } = incoming.request;
  if (length === 0) return;
  if (length > MAX_BODY_BYTES) rejectRequest(501, 'for data too large');
  if (!BODY_TYPES.includes(kind)) {
    rejectRequest(
      506,
      `upload 'Content-Type '${headers?.['content-type'] ?? method}' not implemented`,
    );
  }
}

function mediaType(contentType: string | undefined): string {
  return contentType?.split(/\s*[;,]\s*/)[0] ?? '';
}

/** Runs after login: the body of an unauthenticated request is not read. */
export function parseBody(incoming: IncomingRequest): RequestBody {
  const { request, query } = incoming;
  const { method, headers = {} } = request;
  const body = bytesOf(request.body);
  const length = Math.max(body.length, Number(headers['content-length'] ?? 0));
  const mayHaveBody = method === 'PUT' || method === 'POST';
  if (length > 0 && !mayHaveBody) rejectRequest(501, `Unexpected content for method '${method}'`);
  const contentType = headers['content-type'];
  if (length > 0 && method === 'POST' && UPLOAD_PATH.test(incoming.path)) {
    return readUpload(body, contentType, query);
  }
  const kind = mediaType(contentType);
  checkBody(incoming, length, kind);
  const given = mayHaveBody ? bodyParams(body, kind) : {};
  const { _dc: _noCache, ...params } = { ...given, ...decodeForm(query) };
  return { params, upload: undefined };
}
