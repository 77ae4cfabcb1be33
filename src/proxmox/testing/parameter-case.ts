// SPDX-License-Identifier: Apache-2.0

export type ParameterCaseValue = string | readonly string[];

export interface ParameterCase {
  readonly accept: ParameterCaseValue;
  readonly refuse: ParameterCaseValue;
  /** Absent from 8.4. */
  readonly since?: '9.2';
  /** The text about the parameter, where no rule gives it. */
  readonly error?: string;
  /** What is answered instead of the rules' text: status and reason phrase. */
  readonly response?: string;
}
