/** What clients may expect of sandboxes, snapshots and keys, by what they were told. */
import type { Times } from "./tokens.ts";

/** `maybe`: nobody was told whether it was made, or whether it was deleted. */
export type Existence = "there" | "maybe" | "gone";
/** What may be at a path: the SHA-256 of contents, or `none`. */
export type Possible = ReadonlySet<string>;
export const none = "none";

/** What a sandbox or a snapshot has in it. */
export class Content {
  readonly tokens: Map<string, Times>;
  readonly files: Map<string, Possible>;

  constructor(from?: Content) {
    this.tokens = new Map(from?.tokens);
    this.files = new Map(from?.files);
  }

  /** What may be at a path. */
  at(path: string): Possible {
    return this.files.get(path) ?? new Set([none]);
  }

  /** After an upload. */
  wrote(path: string, sha256: string, isSure: boolean): void {
    this.files.set(path, new Set(isSure ? [sha256] : [...this.at(path), sha256]));
  }
}

/** How a call that made something is made again, so that it is made only once. */
export interface Attempt {
  readonly path: string;
  readonly body: object;
  /** Absent: the client cannot know what became of it. */
  readonly idempotencyKey?: string;
}

interface Made {
  /** Unique, whatever was told. */
  readonly name: string;
  readonly attempt: Attempt;
  id?: string;
  existence: Existence;
}

export interface SandboxModel extends Made {
  readonly content: Content;
}

export interface SnapshotModel extends Made {
  readonly content: Content;
}

export interface KeyModel {
  readonly name: string;
  readonly id: string;
  readonly key: string;
  existence: Existence;
}

/** Everything that clients have asked for. */
export class Models {
  readonly sandboxes: SandboxModel[] = [];
  readonly snapshots: SnapshotModel[] = [];
  readonly keys: KeyModel[] = [];
  /** Names of keys whose making was not answered. */
  readonly keysMaybe = new Set<string>();
}
