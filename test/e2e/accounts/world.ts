/** Shared helpers of the account tests. */
import type { Stack } from "../../helpers/stack.ts";
import type { Visitor } from "../../helpers/visitor.ts";

/** The limits of the installation, small enough to be reached. */
export const limits = { signUps: 4, addressFailures: 6, accountFailures: 3 } as const;

export interface World {
  readonly stack: Stack;
  /** Somebody new, with an address and a browser of their own. */
  visitor(gateway?: number): Visitor;
  /** The same, signed up. */
  member(gateway?: number): Promise<Visitor>;
}

/** The address of the first or second gateway. */
export function urlOf({ stack }: World, gateway: number): string {
  const url = stack.urls[gateway];
  if (!url) throw new Error(`there is no gateway ${gateway}`);
  return url;
}
