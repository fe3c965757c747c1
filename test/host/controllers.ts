/** Control groups of cgroup v1 that this machine lends to another, whose own tree is cgroup v2: there, the kernel limits sandboxes as well. */
import { mkdirSync } from "node:fs";
import { distinctFolders, groupFoldersOf } from "../../shared/util/control-groups.ts";
import { removeGroups } from "./groups.ts";

export class LentControllers {
  /** A group in each hierarchy, below the one in which the test runs. Its processes see it as the topmost one. */
  readonly groups: readonly string[];
  /** The controllers of each hierarchy, in the words of mount(8), separated by spaces. */
  readonly mounted: string;

  private constructor(folders: Readonly<Record<string, string>>) {
    this.groups = distinctFolders(folders);
    this.mounted = this.groups
      .map((group) =>
        Object.keys(folders)
          .filter((controller) => folders[controller] === group)
          .join(","),
      )
      .join(" ");
  }

  /** None where all controllers are in cgroup v2: the machine has them without that. @param name of the groups */
  static lend(name: string): LentControllers {
    const found = groupFoldersOf(name);
    return new LentControllers(found?.version === "v1" ? found.folders : {});
  }

  make(): void {
    for (const group of this.groups) mkdirSync(group, { recursive: true });
  }

  /** When nothing runs in them any more. */
  remove(): void {
    for (const group of this.groups) removeGroups(group);
  }
}
