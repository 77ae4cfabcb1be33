// SPDX-License-Identifier: Apache-2.0

export type ParameterCaseValue = string | readonly string[];

export interface ParameterCase {
  readonly accept: ParameterCaseValue;
  readonly refuse: ParameterCaseValue;
  /** Not in 8.4. */
  readonly since?: '9.2';
  /** The expected error of the parameter, if the rules do not check its format. */
  readonly error?: string;
  /** Expected status and reason phrase, if the response is not a parameter error. */
  readonly response?: string;
}
