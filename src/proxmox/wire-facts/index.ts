// SPDX-License-Identifier: Apache-2.0
// Facts of the Proxmox VE API as data: endpoints with their parameters and privileges, formats, ranges. The only code that
// the client and the simulator share. It contains no behavior. Generated tables are in gen/.
export { endpointsOf, INDEX_RANGES } from './endpoints.ts';
export { CONTENT_FILE_NAMES, NAMED_FORMATS, NEW_DISK, UPID } from './formats.ts';
export { PROPERTY_STRINGS } from './gen/property-strings.ts';
export { builtInRoles, CLOUD_INIT_OPTIONS, OPTION_PRIVILEGES } from './privileges.ts';
export type {
  ApiVersion,
  EndpointFact,
  ParamFact,
  PermissionCheck,
} from './types.ts';
