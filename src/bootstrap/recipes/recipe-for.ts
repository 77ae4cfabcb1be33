// SPDX-License-Identifier: Apache-2.0
import type { Parsed } from '../../model/parsed.ts';
import type { JoinInput, JoinKind } from '../seed-input.ts';
import { customRecipe } from './custom.ts';
import type { JoiningNode, JoinPlan, Recipe } from './join-plan.ts';
import { kubeadmRecipe } from './kubeadm.ts';
import { rancherRecipe } from './rancher.ts';

type JoinOf<Kind> = Extract<JoinInput, { readonly kind: Kind }>;
type Recipes = { readonly [Kind in JoinKind]: Recipe<JoinOf<Kind>> };

const RECIPES: Recipes = {
  k3s: rancherRecipe,
  rke2: rancherRecipe,
  kubeadm: kubeadmRecipe,
  custom: customRecipe,
};

export function recipeFor<Kind extends JoinKind>(kind: Kind): Recipes[Kind] {
  return RECIPES[kind];
}

export function planJoin(
  join: Exclude<JoinInput, { readonly kind: 'none' }>,
  node: JoiningNode,
): Parsed<JoinPlan> {
  switch (join.kind) {
    case 'k3s':
      return RECIPES.k3s(join, node);
    case 'rke2':
      return RECIPES.rke2(join, node);
    case 'kubeadm':
      return RECIPES.kubeadm(join, node);
    case 'custom':
      return RECIPES.custom(join, node);
  }
}
