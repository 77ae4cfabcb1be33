// SPDX-License-Identifier: Apache-2.0
// Syntax errors of YAML in our words. The library's own messages quote the source, and the source of a config
// file may be the line with somebody's password.
import type { ErrorCode } from 'yaml';

const MESSAGES: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: 'an alias cannot have an anchor or a tag',
  BAD_ALIAS: 'this alias or anchor has no proper name',
  BAD_COLLECTION_TYPE: 'this tag does not fit a mapping or list',
  BAD_DIRECTIVE: 'this YAML directive is not known',
  BAD_DQ_ESCAPE:
    'wrong escape after a backslash in double quotes; single quotes take text as it is',
  BAD_INDENT: 'wrong indentation',
  BAD_PROP_ORDER: 'an anchor or tag stands in the wrong place',
  BAD_SCALAR_START: 'text cannot begin with this character; put it in quotes',
  BLOCK_AS_IMPLICIT_KEY:
    'a mapping cannot begin here; is there a second colon, or an indentation missing?',
  BLOCK_IN_FLOW: 'inside [ ] or { } there can be no indented block',
  DUPLICATE_KEY: 'this key appears twice',
  IMPOSSIBLE: 'this is not YAML',
  KEY_OVER_1024_CHARS: 'this key is too long',
  MISSING_CHAR: 'a character is missing: a colon, a comma, a quote or a bracket',
  MULTILINE_IMPLICIT_KEY: 'a key must stand on one line; is a colon missing?',
  MULTIPLE_ANCHORS: 'a value can have one anchor only',
  MULTIPLE_DOCS: 'a second document begins here; a config file is one document',
  MULTIPLE_TAGS: 'a value can have one tag only',
  NON_STRING_KEY: 'a key must be text',
  RESOURCE_EXHAUSTION: 'the file is nested too deeply',
  TAB_AS_INDENT: 'a tab cannot be indentation; use blanks',
  TAG_RESOLVE_FAILED: 'this tag (!name) is not known; a config file needs none',
  UNEXPECTED_TOKEN: 'this does not belong here',
};

export function syntaxMessage(code: ErrorCode): string {
  return MESSAGES[code] ?? MESSAGES.IMPOSSIBLE;
}
