// SPDX-License-Identifier: Apache-2.0
// Our messages for YAML syntax errors. The messages of the library quote the source, which may contain a
// password.
import type { ErrorCode } from 'yaml';

const MESSAGES: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: 'an alias must not have an anchor or a tag',
  BAD_ALIAS: 'this alias or anchor has no valid name',
  BAD_COLLECTION_TYPE: 'this tag cannot be used for a mapping or list',
  BAD_DIRECTIVE: 'unknown YAML directive',
  BAD_DQ_ESCAPE: 'invalid escape sequence in double quotes; use single quotes for literal text',
  BAD_INDENT: 'wrong indentation',
  BAD_PROP_ORDER: 'an anchor or tag is in the wrong place',
  BAD_SCALAR_START: 'text cannot start with this character; put it in quotes',
  BLOCK_AS_IMPLICIT_KEY:
    'a mapping cannot start here; check for a second colon or missing indentation',
  BLOCK_IN_FLOW: 'an indented block is not allowed inside [ ] or { }',
  DUPLICATE_KEY: 'duplicate key',
  IMPOSSIBLE: 'this is not YAML',
  KEY_OVER_1024_CHARS: 'this key is too long',
  MISSING_CHAR: 'a character is missing: a colon, a comma, a quote or a bracket',
  MULTILINE_IMPLICIT_KEY: 'a key must be on one line; check for a missing colon',
  MULTIPLE_ANCHORS: 'a value can have only one anchor',
  MULTIPLE_DOCS: 'a second YAML document starts here; a config file must be a single document',
  MULTIPLE_TAGS: 'a value can have only one tag',
  NON_STRING_KEY: 'a key must be text',
  RESOURCE_EXHAUSTION: 'the file is nested too deeply',
  TAB_AS_INDENT: 'tabs are not allowed for indentation; use spaces',
  TAG_RESOLVE_FAILED: 'unknown YAML tag (!name); remove it',
  UNEXPECTED_TOKEN: 'unexpected text',
};

export const UNRESOLVED_ALIAS = 'this alias (*name) refers to no earlier anchor (&name)';

export function syntaxMessage(code: ErrorCode): string {
  return MESSAGES[code] ?? MESSAGES.IMPOSSIBLE;
}
