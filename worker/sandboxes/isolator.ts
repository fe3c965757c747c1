/** Isolates the containers of sandboxes before anything of the sandbox runs in them. */
import { chownSync } from "node:fs";
import type { BaseImage } from "../../shared/bus/entries.ts";
import type { Config } from "../../shared/config.ts";
import type { Isolation } from "../../shared/schemas/sandboxes.ts";
import { step } from "../../shared/tracing/spans.ts";
import { until } from "../../shared/waiting.ts";
import { boundNamespaces } from "../runtime/container/bounds.ts";
import { type Container, isCopy, madeIn, type RuntimeNote } from "../runtime/container/container.ts";
import { type GroupLimits, GroupV2 } from "../runtime/container/groups.ts";
import type { OciRuntime } from "../runtime/container/oci.ts";
import { groupMaker, type Host } from "../runtime/host/host.ts";
import { signalsLimit } from "../runtime/ids/bounds.ts";
import { rootIdOf } from "../runtime/ids/ranges.ts";
import type { Attachment } from "../runtime/network/attachment.ts";
import type { Namespace } from "../runtime/network/network.ts";
import { beginningUnder, monitorFor } from "../runtime/podman/monitor.ts";
import { type ContainerSpec, variablesOf } from "../runtime/podman/spec.ts";
import { giveWay } from "../runtime/process/priority.ts";
import type { Networks } from "./networks.ts";
import type { Roots } from "./roots.ts";

/** A container that runs. */
export interface Started {
  readonly containerId: string;
  /** What is known of one that may not run yet. */
  readonly made?: Made;
}

/** A container that the OCI runtime has made, and what was begun as soon as its first process had its namespaces. */
interface Made {
  readonly note: RuntimeNote;
  readonly begun: Begun | undefined;
}

interface Begun {
  readonly attachment: Promise<Attachment | undefined>;
  readonly bounds: Promise<void>;
}

/** How often it is looked how far the OCI runtime has come, and for how long. */
const lookPollMs = 1;
const lookMsMax = 60_000;

interface Parts {
  readonly host: Host;
  readonly config: Config;
  readonly oci: OciRuntime;
  readonly networks: Networks;
  readonly roots: Roots;
}

export class Isolator {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Isolates a container as soon as it is there. @param base see `ready` */
  isolate(started: Started, spec: ContainerSpec, base: BaseImage | undefined): Promise<Container> {
    return step("container.isolate", () => this.ready(started, spec, "new", base));
  }

  /**
   * Isolates a container that Podman has crun make and start meanwhile, each part of it as soon as that can be done: less is left to do
   * when it runs.
   *
   * @param signal aborted when Podman is done or has failed
   */
  async isolateEarly(containerId: string, spec: ContainerSpec, base: BaseImage | undefined, signal: AbortSignal): Promise<Container> {
    const { host } = this.#parts;
    const look = { pollMs: lookPollMs, timeoutMs: lookMsMax, signal };
    const monitor = await until(() => monitorFor(host.podmanRunDir, containerId), look);
    // The first of several moves between groups takes the kernel milliseconds. Nobody waits for this one.
    const moved = monitor && host.groups?.share(spec.sandboxId, [monitor]);
    const first = monitor && (await until(() => beginningUnder(monitor) ?? madeIn(host, containerId), look));
    const begun = first ? this.#begin(first, spec) : undefined;
    const note = await until(() => madeIn(host, containerId), look);
    const [container] = await Promise.all([this.isolate({ containerId, ...(note && { made: { note, begun } }) }, spec, base), moved]);
    return container;
  }

  /** Makes ahead what `isolateEarly` has to make before it looks for the container. */
  prepare(spec: ContainerSpec): void {
    this.#parts.host.groups?.prepare(spec.sandboxId, this.#limitsOf(spec));
  }

  /** Ends that. */
  forget({ sandboxId }: ContainerSpec): void {
    this.#parts.host.groups?.forget(sandboxId);
  }

  /** Begins what needs no more of a container than the namespaces of its first process. */
  #begin(first: RuntimeNote, spec: ContainerSpec): Begun {
    const { host, networks } = this.#parts;
    const { pid } = first;
    const bounded = { pid, network: spec.network, hasOwnIds: rootIdOf(pid) > 0, namespace: "new" } as const;
    const begun = { attachment: networks.begin(first, spec), bounds: boundNamespaces(host, bounded) };
    for (const each of Object.values(begun)) each.catch(() => {}); // Whoever needs it waits for it.
    return begun;
  }

  #limitsOf({ isolation, cpus, memoryMiB }: ContainerSpec): GroupLimits {
    return { cpus, memoryMiB, processes: hostProcesses(isolation, this.#parts.config.sandboxPidsMax) };
  }

  /** Sees to it that a container is isolated, and finds out what commands in it need. @param base the image below it; undefined for none */
  async ready({ containerId, made }: Started, spec: ContainerSpec, namespace: Namespace, base: BaseImage | undefined): Promise<Container> {
    const { host, oci, networks, roots } = this.#parts;
    const { sandboxId, network, isolation, memoryMiB } = spec;
    const attachment = await made?.begun?.attachment;
    const inspected = await oci.inspect(containerId, { isolation, network, note: made?.note, networkPid: attachment?.pid });
    if (namespace === "new" && !attachment) await networks.provide(inspected, spec);
    const {
      firstId,
      process: { rlimits = [] },
    } = inspected;
    // Those of a strong sandbox are copies that its runtime has made for its ids.
    if (firstId > 0 && isolation === "standard") for (const file of inspected.ownFiles) chownSync(file, firstId, firstId);
    // In a copy, all of it was done before anything ran.
    const isCopied = isCopy(inspected);
    for (const pid of [...inspected.pids, ...inspected.networkPids]) giveWay(pid);
    // What a group that Podman has made does not limit.
    if (inspected.group instanceof GroupV2) inspected.group.complete(memoryMiB);
    const [group] = await Promise.all([
      groupMaker(host, isolation)?.join(sandboxId, inspected, this.#limitsOf(spec)),
      isCopied ? undefined : (made?.begun?.bounds ?? boundNamespaces(host, { pid: inspected.initPid, network, hasOwnIds: firstId > 0, namespace })),
      attachment?.up,
    ]);
    const bounded = { ...inspected.process, ...(firstId > 0 ? { rlimits: [...rlimits, signalsLimit()] } : {}) };
    const isolated = { ...inspected, group: group ?? inspected.group, process: bounded };
    return base ? withFiles(isolated, base, roots.writable(sandboxId)) : isolated;
  }
}

/** What commands in a container get from its image. @param writable the folder into which the sandbox writes */
export function withFiles(container: Container, base: BaseImage, writable: string | undefined): Container {
  const process = { ...container.process, env: [...(container.process.env ?? []), ...variablesOf(base)], cwd: base.working_dir };
  return { ...container, process, writableLayer: writable ?? container.writableLayer };
}

/** For each process of a strong sandbox, gVisor takes up to about two of the host's, besides some for itself. */
const hostProcesses = (isolation: Isolation, processes: number): number => (isolation === "strong" ? 3 * processes : processes);
