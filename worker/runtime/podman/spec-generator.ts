/**
 * How a container is described to Podman: the part of its SpecGenerator that we use.
 * https://docs.podman.io/en/latest/_static/api.html#tag/containers/operation/ContainerCreateLibpod
 */

export interface Mount {
  readonly type: "bind" | "tmpfs";
  readonly source: string;
  readonly destination: string;
  readonly options: readonly string[];
}

export interface Rlimit {
  /** As in ulimit(1p), without `RLIMIT_`. */
  readonly type: string;
  readonly soft: number;
  readonly hard: number;
}

/** A namespace: made for the container, or as Podman's network modes name it. */
interface Namespace {
  readonly nsmode: string;
}

/** Ids of a container, and where they begin in the namespace in which Podman runs. */
interface IdMap {
  readonly container_id: number;
  readonly host_id: number;
  readonly size: number;
}

export interface SpecGenerator {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** What the root file system comes from: a mounted folder, or an image of which Podman makes one. */
  readonly rootfs?: string;
  readonly image?: string;
  readonly image_volume_mode: "ignore";
  readonly entrypoint: readonly string[];
  readonly command?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly work_dir?: string;
  readonly user?: string;
  readonly hostname?: string;
  readonly mounts?: readonly Mount[];
  readonly netns: Namespace;
  readonly userns?: Namespace;
  /** Of a container with a user namespace of its own. */
  readonly idmappings?: {
    readonly HostUIDMapping: false;
    readonly HostGIDMapping: false;
    readonly UIDMap: readonly IdMap[];
    readonly GIDMap: readonly IdMap[];
  };
  readonly network_options?: Readonly<Record<string, readonly string[]>>;
  readonly cgroups_mode?: "disabled";
  readonly resource_limits?: {
    /** In bytes; `swap` is memory and swap together. */
    readonly memory?: { readonly limit: number; readonly swap: number };
    /** In microseconds. */
    readonly cpu?: { readonly period: number; readonly quota: number };
    readonly pids?: { readonly limit: number };
  };
  readonly r_limits?: readonly Rlimit[];
  readonly oom_score_adj?: number;
  readonly sysctl?: Readonly<Record<string, string>>;
  readonly cap_add?: readonly string[];
  readonly cap_drop?: readonly string[];
  readonly no_new_privileges?: boolean;
  readonly seccomp_profile_path?: string;
  readonly mask?: readonly string[];
  readonly log_configuration: { readonly driver: "none" };
  readonly healthconfig: { readonly Test: readonly ["NONE"] };
  readonly restart_policy?: "no";
  readonly systemd?: "false";
  readonly sdnotifyMode?: "ignore";
  readonly httpproxy?: false;
}

/** Variables or labels from pairs `NAME=value`. */
export function byName(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]));
}
