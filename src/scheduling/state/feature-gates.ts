// SPDX-License-Identifier: Apache-2.0
// Feature gates of kube-scheduler that change a filter's result. Gates that cannot be changed any more are not
// listed.

export interface FeatureGates {
  /** Pods that need a node feature run only on nodes that declare it. */
  readonly NodeDeclaredFeatures: boolean;
  /** Tolerations may compare numbers (Lt, Gt). */
  readonly TaintTolerationComparisonOperators: boolean;
}

/** The defaults of Kubernetes 1.36. */
export const DEFAULT_FEATURE_GATES: FeatureGates = {
  NodeDeclaredFeatures: true,
  TaintTolerationComparisonOperators: false,
};
