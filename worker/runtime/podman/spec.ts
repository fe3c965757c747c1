/** The specification of a sandbox's container. */
import { join } from "node:path";
import type { BaseImage } from "../../../shared/bus/entries.ts";
import type { Config } from "../../../shared/config.ts";
import { idsPerSandbox } from "../../../shared/privileged.ts";
import type { Isolation } from "../../../shared/schemas/sandboxes.ts";
import { shortOf } from "../../../shared/util/ids.ts";
import { execServerPath, initPath, meetingPlace, reaperPath } from "../container/first-process.ts";
import { type Identity, type OwnFiles, ownFiles } from "../container/own-files.ts";
import type { SeccompFilter } from "../container/seccomp-filter.ts";
import type { MeetingPlaces } from "../exec-server/meeting-places.ts";
import { groupMaker, type Host } from "../host/host.ts";
import { pendingSignalsMax } from "../ids/bounds.ts";
import { copiesBeside, firstIdOf } from "../ids/ranges.ts";
import { isAttached, slirp } from "../network/network.ts";
import { isolation, limit } from "./isolation.ts";
import { byName, type Mount, type SpecGenerator } from "./spec-generator.ts";

/** Tells which range of ids a container has. */
export const rangeLabel = "sandgate.range";
const copiesAnnotation = "sandgate.copies";
const cpuPeriodMicros = 100_000;

/** What a sandbox asks for. */
export interface ContainerSpec {
  readonly sandboxId: string;
  readonly cpus: number;
  readonly memoryMiB: number;
  readonly network: "none" | "outbound";
  readonly isolation: Isolation;
}

/** The mounted files of a container, and the image below them. */
export interface ContainerFiles {
  readonly dir: string;
  /** Undefined while it has no files. */
  readonly base: BaseImage | undefined;
  /** Of ids that it has for itself; undefined for those of the worker. */
  readonly range: number | undefined;
}

/** With the worker in it: while a sandbox moves, both workers have a container of it, which may be in one storage. */
export const containerName = (sandboxId: string, workerId: string): string => `${formerContainerName(sandboxId)}-${workerId}`;

/** As earlier versions called it. */
export const formerContainerName = (sandboxId: string): string => `sandgate-${sandboxId}`;

/** Where a container is to run. */
interface On {
  readonly host: Host;
  readonly config: Pick<Config, "sandboxNofile" | "sandboxPidsMax">;
  readonly workerId: string;
  readonly meetings: MeetingPlaces;
  readonly own: Pick<OwnFiles, "of">;
  readonly filter: Pick<SeccompFilter, "specification">;
}

/** Specifies an idle container, whose first process only waits, or only starts the exec server. */
export function containerSpec(on: On, spec: ContainerSpec, files: ContainerFiles): SpecGenerator {
  const { host, config, workerId, filter } = on;
  const isolated = isolation(host, spec);
  const limited = limits(host, config, spec);
  const filtered = spec.isolation === "standard" ? filter.specification : undefined;
  return {
    name: containerName(spec.sandboxId, workerId),
    labels: byName([`sandgate.worker=${workerId}`, `sandgate.sandbox=${spec.sandboxId}`, ...imageLabels(files), ...rangeLabels(files)]),
    ...firstProcessOf(on, spec, files),
    hostname: hostnameOf(spec),
    log_configuration: { driver: "none" },
    healthconfig: { Test: ["NONE"] },
    restart_policy: "no",
    image_volume_mode: "ignore",
    systemd: "false",
    sdnotifyMode: "ignore",
    httpproxy: false,
    ...rootOf(files),
    ...idsOf(files),
    // One that is attached from outside has none for Podman.
    ...networkOf(spec.network === "none" || isAttached(host, spec) ? "none" : host.network),
    ...isolated,
    ...filtered,
    annotations: { ...isolated.annotations, ...copiesOf(spec, files), ...filtered?.annotations },
    ...limited,
    mounts: [...programsOf(on, spec), ...isolated.mounts, ...ownFilesOf(on, spec)],
    r_limits: [...isolated.r_limits, ...limited.r_limits],
  };
}

const hostnameOf = ({ sandboxId }: Pick<ContainerSpec, "sandboxId">): string => `sandbox-${shortOf(sandboxId)}`;

const imageLabels = ({ base }: ContainerFiles): string[] => (base === undefined ? [] : [`sandgate.image=${base.id}`]);

const rangeLabels = ({ range }: ContainerFiles): string[] => (range === undefined ? [] : [`${rangeLabel}=${range}`]);

/** Where `systemd/base/strong-runtime` puts what ids of the sandbox's own could not reach. */
const copiesOf = ({ isolation }: ContainerSpec, { dir, range }: ContainerFiles): Readonly<Record<string, string>> =>
  isolation === "strong" && range !== undefined ? { [copiesAnnotation]: copiesBeside(dir) } : {};

/** A user namespace of its own for a container with ids of its own. */
function idsOf({ range }: ContainerFiles) {
  if (range === undefined) return {};
  const map = [{ container_id: 0, host_id: firstIdOf(range), size: idsPerSandbox }];
  return { userns: { nsmode: "private" }, idmappings: { HostUIDMapping: false, HostGIDMapping: false, UIDMap: map, GIDMap: map } as const };
}

/** The exec server starts itself when the sandbox is limited; without it, the first process only waits. */
function firstProcessOf({ host }: On, { isolation }: ContainerSpec, { range }: ContainerFiles) {
  if (!hasExecServer(host, isolation)) return { entrypoint: [initPath], command: ["-P"] };
  return { entrypoint: [execServerPath], command: range === undefined ? [] : [String(pendingSignalsMax())] };
}

/** A strong sandbox has a kernel of its own, whose programs get no descriptors of the host's. */
const hasExecServer = ({ execServer }: Host, isolation: Isolation): boolean => execServer !== undefined && isolation === "standard";

/** Our programs in a container. */
function programsOf({ host, meetings }: On, { isolation, sandboxId }: ContainerSpec): Mount[] {
  const { initBinary, reaperBinary, execServer } = host;
  return [
    program(initBinary, initPath),
    ...(reaperBinary ? [program(reaperBinary, reaperPath)] : []),
    ...(execServer ? [program(execServer, execServerPath)] : []),
    ...(hasExecServer(host, isolation) ? [shown(meetings.of(sandboxId), meetingPlace)] : []),
  ];
}

const program = (source: string, destination: string): Mount => ({ type: "bind", source, destination, options: ["ro", "rprivate", "rbind"] });

const shown = (source: string, destination: string): Mount => ({
  ...program(source, destination),
  options: ["ro", "rprivate", "rbind", "nosuid", "nodev", "noexec"],
});

/**
 * A container without an image gets only the configuration given here. The image's working directory is set for commands only,
 * since Podman would not start the container if it had been removed. Variables without a value are left out, because Podman
 * would fill them from the worker's environment.
 */
function rootOf({ dir, base }: ContainerFiles) {
  return {
    rootfs: dir,
    work_dir: "/",
    env: byName(base ? variablesOf(base) : []),
    ...(base?.user ? { user: base.user } : {}),
  };
}

/** The environment that an image gives to what runs in it. */
export const variablesOf = ({ env }: Pick<BaseImage, "env">): string[] => env.filter((pair) => pair.indexOf("=") > 0);

/**
 * What a sandbox's own files say; undefined for one of which only Podman knows the address, or whose runtime has copies of what Podman
 * writes. Nothing in them tells its worker.
 */
export function identityOf(host: Host, spec: Pick<ContainerSpec, "sandboxId" | "isolation" | "network">): Identity | undefined {
  const isKnown = spec.isolation === "standard" && (spec.network === "none" || isAttached(host, spec));
  if (!isKnown) return undefined;
  return { names: [hostnameOf(spec), formerContainerName(spec.sandboxId)], address: spec.network === "none" ? undefined : slirp.own };
}

function ownFilesOf({ host, own }: On, spec: ContainerSpec): Mount[] {
  const identity = identityOf(host, spec);
  if (!identity) return [];
  const { resolver, ...always } = ownFiles;
  const files = identity.address === undefined ? always : { ...always, resolver };
  return Object.entries(files).map(([name, destination]) => ({
    type: "bind",
    source: join(own.of(spec.sandboxId), name),
    destination,
    options: ["rw", "rprivate", "rbind", "nosuid", "nodev", "noexec"],
  }));
}

/** @param network a value of podman's `--network` */
function networkOf(network: string) {
  const [nsmode = "", options] = network.split(":");
  return { netns: { nsmode }, ...(options ? { network_options: { [nsmode]: options.split(",") } } : {}) };
}

function limits(host: Host, config: Pick<Config, "sandboxNofile" | "sandboxPidsMax">, spec: ContainerSpec) {
  const { limits, controlGroups, nofileMax, nprocShared } = host;
  const byPodman = groupMaker(host, spec.isolation) === undefined;
  const bytes = spec.memoryMiB * 1024 ** 2;
  const resources = {
    ...(limits.memory && byPodman ? { memory: { limit: bytes, swap: bytes } } : {}),
    ...(limits.cpu && byPodman ? { cpu: { period: cpuPeriodMicros, quota: Math.round(spec.cpus * cpuPeriodMicros) } } : {}),
    ...(limits.pids && byPodman ? { pids: { limit: config.sandboxPidsMax } } : {}),
  };
  return {
    // On cgroup v1, it has no groups without root.
    ...(!byPodman && controlGroups === "v2" ? { cgroups_mode: "disabled" as const } : {}),
    // If there are any, Podman looks at all that the kernel can limit.
    ...(Object.keys(resources).length > 0 ? { resource_limits: resources } : {}),
    r_limits: [
      limit("core", 0),
      limit("nofile", Math.min(config.sandboxNofile, nofileMax)),
      // Without a pids controller, this limit, shared by all sandboxes of the worker, protects the host from a fork bomb.
      ...(limits.pids ? [] : [limit("nproc", nprocShared)]),
    ],
  };
}
