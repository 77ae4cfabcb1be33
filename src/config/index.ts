// SPDX-License-Identifier: Apache-2.0
// The config: one schema for the file, from which types, validation with file:line:col, JSON Schema, the
// reference page and `config show` are derived; overrides from environment and flags; importers for the
// files of other systems. This folder owns the notation and the meaning of settings. It does not know how
// settings are used. It reads no file and no environment itself (the caller passes reader functions), and
// it never stores the value of a secret. Only main.ts and cli/ import it. Start reading at
// load/load-config.ts.
//
// Importing this file loads the validation library, which increases the start-up time: import it only
// where a config is needed.
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
export { locateConfig, type ReadInput, readConfig } from './load/read-config.ts';
export type { FlagValue } from './overrides/apply-overrides.ts';
export { describeOrigin, type ValueOrigin } from './overrides/origin.ts';
export { describePlannedKey, type PlannedKey } from './planned-keys.ts';
export {
  type CombinedConfig,
  combinePools,
  type PoolRefusal,
} from './pool-objects/combine-pools.ts';
export { poolDefinition } from './pool-objects/definition.ts';
export { fixedSize, type PoolDefinition, type PoolEntry } from './pool-objects/pool-entry.ts';
export { type Problem, renderProblems, type Severity } from './problem.ts';
export { renderJsonSchema } from './reference/json-schema.ts';
export { renderConfigReference } from './reference/markdown.ts';
export { type ConfigChanges, compareConfigs } from './restart-keys.ts';
export {
  type ResolvedSecret,
  resolveSecret,
  type SecretReaders,
} from './secrets/resolve-secret.ts';
export type { SecretSource } from './secrets/secret-source.ts';
export { renderConfigJson, renderConfigYaml, type ShownValue } from './show/show-config.ts';
export { type StarterOptions, starterConfig } from './starter/starter-config.ts';
export { type IpAddress, parseIpAddress, subnetOf } from './values/ip-address.ts';
