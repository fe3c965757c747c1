/** Which processes sandboxes have at one moment. */
import { type Container, isCopy } from "../runtime/container/container.ts";
import { processesByNamespace } from "../runtime/process/proc.ts";

export class Spaces {
  #spaces: ReadonlyMap<string, readonly number[]> | undefined;
  readonly #members = new Map<Container, readonly number[]>();

  /**
   * The processes of a sandbox, its first one among them. Its control group tells them. Where it has none, or its processes may be
   * elsewhere (gVisor's, and those that continue from an image), all processes of the machine are looked at, once for all sandboxes.
   */
  membersOf(container: Container): readonly number[] {
    const known = this.#members.get(container);
    if (known) return known;
    const isGrouped = container.isolation === "standard" && !isCopy(container);
    const members = (isGrouped ? container.group?.processes() : undefined) ?? this.#inNamespace(container.pidNamespace);
    this.#members.set(container, members);
    return members;
  }

  #inNamespace(name: string): readonly number[] {
    this.#spaces ??= processesByNamespace();
    return this.#spaces.get(name) ?? [];
  }
}
