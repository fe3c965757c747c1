/** Creates, starts, stops, removes and lists Podman's containers. */
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../../../shared/config.ts";
import type { Isolation } from "../../../shared/schemas/sandboxes.ts";
import { attempt } from "../../../shared/util/attempt.ts";
import { retry } from "../../../shared/waiting.ts";
import { runtimeOf } from "../container/container.ts";
import type { Copies } from "../container/copies.ts";
import type { OwnFiles } from "../container/own-files.ts";
import type { SeccompFilter } from "../container/seccomp-filter.ts";
import type { MeetingPlaces } from "../exec-server/meeting-places.ts";
import type { Host } from "../host/host.ts";
import { endLeftAttachments } from "../network/attachment.ts";
import { run } from "../process/run.ts";
import { reportsIn } from "./container-store.ts";
import { endMonitors, endNow, isMonitored, monitorFor, monitorsOf } from "./monitor.ts";
import { failure, isDone, PodmanLost, reasonOf } from "./podman.ts";
import type { PodmanService } from "./service.ts";
import { type ContainerFiles, type ContainerSpec, containerName, containerSpec, formerContainerName, identityOf, rangeLabel } from "./spec.ts";
import type { SpecGenerator } from "./spec-generator.ts";

const deleteTimeoutMs = 10_000;

export interface ListedContainer {
  readonly containerId: string;
  readonly sandboxId: string;
  readonly running: boolean;
  readonly range: number | undefined;
}

/** A container as Podman's list has it. */
interface Described {
  readonly Id: string;
  readonly Names: readonly string[];
  readonly State: string;
  readonly Labels: Readonly<Record<string, string>>;
}

interface Parts {
  readonly config: Config;
  readonly host: Host;
  readonly workerId: string;
  readonly meetings: MeetingPlaces;
  readonly own: OwnFiles;
  readonly filter: SeccompFilter;
  readonly copies: Copies;
  /** The folder of their containers. */
  readonly store: string;
  /** By the isolation of the containers that they create; that of the images has those of a former version. */
  readonly services: Readonly<Record<Isolation | "images", PodmanService>>;
}

/** How a container is made. */
interface Steps {
  /** The last call, by its name in the API. */
  readonly last: "start" | "init";
  readonly onCreated: OnCreated | undefined;
}

type OnCreated = (containerId: string) => Promise<void>;

/** How often a removal that fails is tried again, and after how long. */
const removalRetries = 4;
const removalPauseMs = 250;

export class Podman {
  readonly #parts: Parts;
  /** The ids of those that a former version has made. */
  readonly #former = new Set<string>();
  /** Ids of the containers, by name. */
  readonly #ids = new Map<string, string>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Announces `run`, so that Podman is ready by then. */
  prepare({ isolation }: Pick<ContainerSpec, "isolation">): void {
    this.#parts.services[isolation].warm();
  }

  /**
   * Creates and starts an idle container. Returns the container's id.
   *
   * @param onCreated is told the id before the container is started, which waits for it, and another one when that has to be begun anew
   * @throws {SandgateError} `insufficient_storage`, `internal_error`.
   */
  run(spec: ContainerSpec, files: ContainerFiles, onCreated?: OnCreated): Promise<string> {
    return this.#make(spec, files, { last: "start", onCreated });
  }

  /** Creates a container whose first process waits to be started. Returns the container's id. @throws like `run` */
  hold(spec: ContainerSpec, files: ContainerFiles): Promise<string> {
    return this.#make(spec, files, { last: "init", onCreated: undefined });
  }

  async #make(spec: ContainerSpec, files: ContainerFiles, steps: Steps): Promise<string> {
    const generator = containerSpec(this.#parts, spec, files);
    await this.#provide(spec);
    const service = this.#parts.services[spec.isolation];
    try {
      return await this.#create(service, generator, steps);
    } catch (error) {
      if (!(error instanceof PodmanLost)) throw error;
      // Nobody knows how far it got. By its name everything of it is found and removed.
      await this.remove(generator.name);
      return this.#create(service, generator, steps);
    }
  }

  /** Makes what a container gets from a folder in memory. */
  async #provide(spec: Pick<ContainerSpec, "sandboxId" | "isolation" | "network">): Promise<void> {
    const { host, meetings, own } = this.#parts;
    meetings.make(spec.sandboxId);
    const identity = identityOf(host, spec);
    if (identity) await own.make(spec.sandboxId, identity);
  }

  async #create(service: PodmanService, generator: SpecGenerator, { last, onCreated }: Steps): Promise<string> {
    const made = await service.call({ method: "POST", path: "/containers/create", body: generator });
    if (!isDone(made)) throw failure("create the container", made);
    const { Id } = JSON.parse(made.text) as { Id: string };
    this.#ids.set(generator.name, Id);
    await onCreated?.(Id);
    const started = await service.call({ method: "POST", path: `/containers/${Id}/${last}` });
    if (!isDone(started)) throw failure("start the container", started);
    return Id;
  }

  /**
   * Starts a stopped container that Podman has made from an image, with its files unchanged.
   *
   * @returns false when Podman does not know it any more, or does not know that it has stopped, because its monitor was killed as well
   */
  async start(containerId: string, spec: Pick<ContainerSpec, "sandboxId" | "isolation" | "network">): Promise<boolean> {
    // It is in memory, and gone if the machine was restarted.
    await this.#provide(spec);
    const start = { method: "POST", path: `/containers/${containerId}/start` } as const;
    const service = this.#serviceOf(containerId);
    let answer = await service.repeat(start);
    // When everything was killed at once, nobody has told the OCI runtime that the container has ended.
    if (!isDone(answer) && /container .*already exists/.test(reasonOf(answer))) {
      await endNow(this.#parts.host.podmanRunDir, containerId);
      await this.#forget(containerId, "standard");
      answer = await service.repeat(start);
    }
    if (answer.status === 404 || answer.status === 304) return false;
    if (!isDone(answer)) throw failure("start the container again", answer);
    return true;
  }

  /** Stops a container's processes and keeps its files. */
  async stop(containerId: string): Promise<void> {
    const { podmanRunDir } = this.#parts.host;
    const monitor = monitorFor(podmanRunDir, containerId);
    if (this.#parts.copies.end(containerId)) await endNow(podmanRunDir, containerId);
    const answer = await this.#serviceOf(containerId).repeat({ method: "POST", path: `/containers/${containerId}/stop`, query: { timeout: "1" } });
    if (!isDone(answer) && answer.status !== 404) throw failure("stop the container", answer);
    if (monitor === undefined) endLeftAttachments((one) => one === containerId);
  }

  /** Removes the container of a sandbox as `remove` does, by its name, under which it is found however far its making got. */
  async removeOf(sandboxId: string): Promise<void> {
    const former = formerContainerName(sandboxId);
    await this.remove(this.#ids.has(former) ? former : containerName(sandboxId, this.#parts.workerId));
  }

  /** Removes a container and its files; does nothing if it does not exist. */
  async remove(nameOrId: string): Promise<void> {
    const { host, copies } = this.#parts;
    const known = this.#ids.get(nameOrId) ?? nameOrId;
    const service = this.#serviceOf(known);
    copies.end(known);
    const ended = await endNow(host.podmanRunDir, known);
    await retry(
      async () => {
        const answer = await service.repeat({ method: "DELETE", path: `/containers/${nameOrId}`, query: { force: "true", timeout: "0", v: "true" } });
        if (!isDone(answer) && answer.status !== 404) throw failure("remove the container", answer);
      },
      // What a service that was killed has started may still be at work on the container.
      (_, tries) => (tries < removalRetries ? removalPauseMs : undefined),
    );
    if (ended.length === 0) endLeftAttachments((containerId) => containerId === known);
    this.#ids.delete(nameOrId);
    this.#former.delete(known);
    copies.forget(known);
    for (const id of new Set([...ended, known])) await this.#forgetEnded(id);
  }

  /** Ends what runs in containers that Podman does not know, because it was killed as it started them. */
  async endUnknown(): Promise<void> {
    const {
      host: { podmanRunDir },
      store,
    } = this.#parts;
    // Looked for before the list is made, which knows all that is started meanwhile.
    const monitors = monitorsOf(podmanRunDir, store);
    const known = new Set((await this.#listed({})).map(({ Id }) => Id));
    const unknown = monitors.filter(({ containerId }) => !known.has(containerId));
    await endMonitors(unknown);
    for (const { containerId } of unknown) await this.#forgetEnded(containerId);
    endLeftAttachments((containerId) => !isMonitored(containerId));
  }

  /** The containers of this worker, running or not. */
  async list(): Promise<ListedContainer[]> {
    const containers = await this.#listed({ label: [`sandgate.worker=${this.#parts.workerId}`] });
    for (const { Id, Names } of containers) for (const name of Names) this.#ids.set(name, Id);
    return containers.map(({ Id, State, Labels }) => ({
      containerId: Id,
      sandboxId: Labels["sandgate.sandbox"] ?? "",
      running: State === "running" || this.#parts.copies.of(Id) !== undefined,
      range: Labels[rangeLabel] === undefined ? undefined : Number(Labels[rangeLabel]),
    }));
  }

  /** The service that knows a container. */
  #serviceOf(id: string): PodmanService {
    const { images, standard } = this.#parts.services;
    return this.#former.has(id) ? images : standard;
  }

  async #listed(filters: object): Promise<Described[]> {
    const { images, standard } = this.#parts.services;
    // After a restart of the machine, Podman notes that those of a former version have ended if it is asked for them first.
    const former = await listedBy(images, filters);
    for (const { Id } of former) this.#former.add(Id);
    return [...former, ...(await listedBy(standard, filters))];
  }

  /** Removes what is left of a container that was ended: Podman does not know that it had the runtime make it if it was killed in doing so. */
  async #forgetEnded(id: string): Promise<void> {
    const {
      host: { crunDir, strongDir, podmanRunDir },
      store,
    } = this.#parts;
    if (existsSync(join(crunDir, id))) await this.#forget(id, "standard");
    const strong = attempt(() => readdirSync(strongDir))?.filter((name) => name.includes(id)) ?? [];
    if (strong.length > 0) await this.#forget(id, "strong");
    // gVisor's runtime knows nothing of a container that it was killed in making, but leaves its lock and its socket.
    for (const name of strong) rmSync(join(strongDir, name), { force: true });
    for (const reports of [reportsIn(store), join(podmanRunDir, "libpod/tmp/exits")]) rmSync(join(reports, id), { force: true });
  }

  /** Has the OCI runtime forget a container. */
  async #forget(containerId: string, isolation: Isolation): Promise<void> {
    await run(runtimeOf(this.#parts.host, isolation), ["delete", "--force", containerId], { timeoutMs: deleteTimeoutMs });
  }
}

async function listedBy(service: PodmanService, filters: object): Promise<Described[]> {
  const answer = await service.repeat({ method: "GET", path: "/containers/json", query: { all: "true", filters: JSON.stringify(filters) } });
  if (!isDone(answer)) throw failure("list the containers", answer);
  return JSON.parse(answer.text) as Described[];
}
