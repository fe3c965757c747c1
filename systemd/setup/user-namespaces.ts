/**
 * Ubuntu lets only programs with an AppArmor profile that says so use what user namespaces give them, and rootless containers are
 * made of those. It has such profiles for Podman and what belongs to it; programs from elsewhere get one here. The restriction
 * stays for all other programs.
 */
import { readFileSync, realpathSync } from "node:fs";
import { attempt } from "../../shared/util/attempt.ts";
import { readIfThere } from "../base/write-file.ts";
import type { Administrator } from "./administrator.ts";
import { findProgram } from "./programs.ts";
import type { Step } from "./step.ts";

/** Whether the kernel restricts user namespaces to programs with a profile. */
const restriction = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
/** The names of all profiles in the kernel, with their modes. */
const loadedProfiles = "/sys/kernel/security/apparmor/profiles";
export const profileFile = "/etc/apparmor.d/sandgate";
const prefix = "sandgate-";

/** What makes user namespaces: everything else of a container is started by these, and has their profile. */
const programs = ["podman", "crun", "runsc", "slirp4netns"] as const;

export function userNamespaces(administrator: Administrator): Step {
  const wanted = (): string | undefined => {
    if (attempt(() => readFileSync(restriction, "utf8").trim()) !== "1") return undefined;
    const loaded = profilesIn(attempt(() => readFileSync(loadedProfiles, "utf8")) ?? "");
    const found = programs.flatMap((name) => {
      const path = loaded.includes(name) ? undefined : findProgram(name);
      return path ? [{ name, path: realpathSync(path) }] : [];
    });
    return found.length > 0 ? profileText(found) : undefined;
  };
  const isLoaded = (text: string): boolean => {
    const loaded = profilesIn(attempt(() => readFileSync(loadedProfiles, "utf8")) ?? "");
    return profilesOf(text).every((name) => loaded.includes(name));
  };
  return {
    title: "Letting the programs of containers use user namespaces (AppArmor)",
    lacks: async () => {
      const text = wanted();
      if (text === undefined || ((await readIfThere(profileFile)) === text && isLoaded(text))) return undefined;
      return profilesOf(text).join(", ");
    },
    provide: async () => {
      const script = 'printf %s "$1" > "$2.partial" && mv "$2.partial" "$2" && apparmor_parser --replace "$2"';
      await administrator.run("let rootless containers use user namespaces", ["sh", "-c", script, "sh", wanted() ?? "", profileFile]);
    },
  };
}

/** Each program with a profile that restricts nothing. */
export const profileText = (found: readonly { readonly name: string; readonly path: string }[]): string =>
  [
    "# Written by Sandgate: lets these programs use user namespaces, which the kernel denies to programs without a profile.",
    "abi <abi/4.0>,",
    ...found.flatMap(({ name, path }) => ["", `profile ${prefix}${name} "${path}" flags=(unconfined) {`, "  userns,", "}"]),
    "",
  ].join("\n");

const profilesOf = (text: string): string[] => [...text.matchAll(/^profile (\S+)/gm)].map(([, name = ""]) => name);

/** @param text as the kernel has it, such as "podman (unconfined)" in a line */
export const profilesIn = (text: string): string[] => text.split("\n").flatMap((line) => /^(\S+) \(/.exec(line)?.[1] ?? []);
