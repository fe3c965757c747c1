/** The AppArmor profiles for Ubuntu, whose kernel alone restricts user namespaces by them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Terminal } from "../../../../systemd/base/terminal.ts";
import { createAdministrator } from "../../../../systemd/setup/administrator.ts";
import { profilesIn, profileText, userNamespaces } from "../../../../systemd/setup/user-namespaces.ts";

test("each program gets a profile that lets it use user namespaces and restricts nothing", () => {
  const text = profileText([
    { name: "podman", path: "/usr/bin/podman" },
    { name: "runsc", path: "/usr/local/bin/runsc" },
  ]);
  assert.match(text, /^abi <abi\/4\.0>,$/m);
  assert.match(text, /^profile sandgate-podman "\/usr\/bin\/podman" flags=\(unconfined\) \{\n {2}userns,\n\}$/m);
  assert.equal(text.match(/^profile /gm)?.length, 2);
});

test("the profiles that a machine has are known by the kernel's list of them", () => {
  assert.deepEqual(profilesIn("podman (unconfined)\nlsb_release (enforce)\nlsb_release//child (enforce)\n\n"), ["podman", "lsb_release", "lsb_release//child"]);
});

test("where the kernel has no such restriction, there is nothing to do", async () => {
  const administrator = createAdministrator(new Terminal(process.stderr), new AbortController().signal);
  assert.equal(await userNamespaces(administrator).lacks(), undefined);
});
