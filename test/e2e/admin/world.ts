/** Shared helpers of the operator tests. */
import type { Api } from "../../helpers/api.ts";
import type { Stack } from "../../helpers/stack.ts";
import type { Visitor } from "../../helpers/visitor.ts";

export interface AdminWorld {
  readonly stack: Stack;
  /** The account `admin`, by its key. */
  operator(gateway?: number): Api;
  /** Somebody who has just signed up, logged in. */
  member(gateway?: number): Promise<Visitor & { readonly id: string }>;
}

export interface AccountView {
  readonly id: string;
  readonly email: string | null;
  readonly tier: string;
  readonly limits: { readonly requests_per_minute: number; readonly burst: number; readonly sandboxes: number };
  readonly custom_limits: Record<string, number> | null;
  readonly suspended: boolean;
  readonly operator: boolean;
  readonly keys: number;
  readonly sandboxes: number;
  readonly api_keys?: readonly { readonly id: string }[];
}

export interface PageOf<T> {
  readonly data: readonly T[];
  readonly pagination: { readonly page: number; readonly page_size: number; readonly total_items: number; readonly total_pages: number };
}

/** The id of the account that the settings make. */
export const adminId = `acct_${"0".repeat(26)}`;

/** The ids of the first items of a list. */
export function newestOf(items: readonly { readonly id: string }[], count: number): string[] {
  return items.slice(0, count).map(({ id }) => id);
}
