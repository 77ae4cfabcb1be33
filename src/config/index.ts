// SPDX-License-Identifier: Apache-2.0
// The config: one schema for the file, from which types, validation with file:line:col, JSON Schema, the
// reference page and `config show` are made; environment and flags laid over it; importers of other systems'
// files. Owns how settings are written and what they mean. Does not know what is done with them, reads no file
// and no environment itself, and never holds the value of a secret: reading is handed in, and only main.ts and
// the command line come in here. Start reading at load/load-config.ts.
//
// Loading this loads the validation library, which costs start-up time: import it where a config is needed.
export {
  type Config,
  type ImageConfig,
  type PoolConfig,
  type RegionConfig,
  type TemplateConfig,
} from './effective/config.ts';
export {
  importConfig,
  importReportJson,
  renderImportProblems,
  renderImportReport,
} from './import/index.ts';
export {
  type LoadedConfig,
  type LoadFailure,
  type LoadInput,
  type LoadResult,
  loadConfig,
} from './load/load-config.ts';
export { type ReadInput, readConfig } from './load/read-config.ts';
export type { FlagValue } from './overrides/apply-overrides.ts';
export type { ValueOrigin } from './overrides/origin.ts';
export type { PlannedKey } from './planned-keys.ts';
export { type Problem, renderProblems, type Severity } from './problem.ts';
export { renderJsonSchema } from './reference/json-schema.ts';
export { renderConfigReference } from './reference/markdown.ts';
export {
  type ResolvedSecret,
  resolveSecret,
  type SecretReaders,
} from './secrets/resolve-secret.ts';
export { Secret } from './secrets/secret.ts';
export type { SecretSource } from './secrets/secret-source.ts';
export { renderConfigJson, renderConfigYaml, type ShownValue } from './show/show-config.ts';
export { type StarterOptions, starterConfig } from './starter/starter-config.ts';
