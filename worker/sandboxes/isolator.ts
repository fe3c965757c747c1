/** Isolates the containers of sandboxes before anything of the sandbox runs in them. */
import { chownSync } from "node:fs";
import type { BaseImage } from "../../shared/bus/entries.ts";
import type { Config } from "../../shared/config.ts";
import type { Isolation } from "../../shared/schemas/sandboxes.ts";
import { step } from "../../shared/tracing/spans.ts";
import { type Container, isCopy, type RuntimeNote } from "../runtime/container/container.ts";
import { GroupV2 } from "../runtime/container/groups.ts";
import type { OciRuntime } from "../runtime/container/oci.ts";
import { groupMaker, type Host } from "../runtime/host/host.ts";
import { boundUser, signalsLimit } from "../runtime/ids/bounds.ts";
import { closePrivateNetworks, type Namespace } from "../runtime/network/network.ts";
import { type ContainerSpec, variablesOf } from "../runtime/podman/spec.ts";
import { giveWay } from "../runtime/process/priority.ts";
import type { Networks } from "./networks.ts";
import type { Roots } from "./roots.ts";

/** A container that runs, or that the OCI runtime has made according to its note. */
export interface Started {
  readonly containerId: string;
  readonly note?: RuntimeNote | undefined;
}

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

  /** Sees to it that a container is isolated, and finds out what commands in it need. @param base the image below it; undefined for none */
  async ready({ containerId, note }: Started, spec: ContainerSpec, namespace: Namespace, base: BaseImage | undefined): Promise<Container> {
    const { host, config, oci, networks, roots } = this.#parts;
    const { sandboxId, network, isolation, cpus, memoryMiB } = spec;
    const attachment = note && (await networks.begin(note, spec));
    const inspected = await oci.inspect(containerId, { isolation, network, note, networkPid: attachment?.pid });
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
    const limits = { cpus, memoryMiB, processes: hostProcesses(isolation, config.sandboxPidsMax) };
    // What a group that Podman has made does not limit.
    if (inspected.group instanceof GroupV2) inspected.group.complete(memoryMiB);
    const [group] = await Promise.all([
      groupMaker(host, isolation)?.join(sandboxId, inspected, limits),
      network === "outbound" && !isCopied ? closePrivateNetworks(host, inspected.initPid, namespace) : undefined,
      firstId > 0 && !isCopied ? boundUser(inspected.initPid) : undefined,
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
