/** Names of images: what is one, what all of its spellings come to, and what is said of everything else. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { SandgateError } from "../../../../shared/errors.ts";
import { defaultImageWord, hostOf, isImageId, nameOf, parseImage, parseRegistry, wantedImage } from "../../../../shared/util/image.ts";

const digest = `sha256:${"0123456789abcdef".repeat(4)}`;

const whole: readonly (readonly [given: string, meant: string])[] = [
  ["alpine", "docker.io/library/alpine:latest"],
  ["alpine:3", "docker.io/library/alpine:3"],
  ["library/alpine", "docker.io/library/alpine:latest"],
  ["docker.io/alpine", "docker.io/library/alpine:latest"],
  ["index.docker.io/alpine:3", "docker.io/library/alpine:3"],
  ["Docker.IO/library/alpine", "docker.io/library/alpine:latest"],
  ["team/tool", "docker.io/team/tool:latest"],
  ["team/deep/tool:1.2_3-x", "docker.io/team/deep/tool:1.2_3-x"],
  ["ghcr.io/team/tool", "ghcr.io/team/tool:latest"],
  ["GHCR.io/team/tool", "ghcr.io/team/tool:latest"],
  ["registry.example:5000/a", "registry.example:5000/a:latest"],
  ["localhost:5000/a:b", "localhost:5000/a:b"],
  ["localhost/a", "localhost/a:latest"],
  ["LOCALHOST/a", "localhost/a:latest"],
  ["192.0.2.1/a", "192.0.2.1/a:latest"],
  ["[2001:db8::1]:5000/a", "[2001:db8::1]:5000/a:latest"],
  [`alpine@${digest}`, `docker.io/library/alpine@${digest}`],
  [`alpine:3@${digest}`, `docker.io/library/alpine@${digest}`],
  // Names like any other: nothing is read from the host, and nobody has such images.
  ["tarball:x", "docker.io/library/tarball:x"],
  ["oci:latest", "docker.io/library/oci:latest"],
  ["default:latest", "docker.io/library/default:latest"],
  [digest, `docker.io/library/${digest}`],
  ["foo:5000", "docker.io/library/foo:5000"],
  ["a", "docker.io/library/a:latest"],
  ["0", "docker.io/library/0:latest"],
  [`x:${"t".repeat(128)}`, `docker.io/library/x:${"t".repeat(128)}`],
  [`${"a".repeat(247)}`, `docker.io/library/${"a".repeat(247)}:latest`],
];

describe("is an image", () => {
  for (const [given, meant] of whole) {
    test(given.length > 60 ? `${given.slice(0, 60)}…` : given, () => {
      assert.equal(nameOf(parseImage(given)), meant);
      assert.equal(nameOf(parseImage(meant)), meant, "its whole name means itself");
    });
  }
});

const refused: readonly (readonly [what: string, given: string, why: RegExp])[] = [
  ["nothing", "", /it is empty/],
  ["a space", " ", /its path/],
  ["spaces around", " alpine ", /its path/],
  ["a line break behind", "default\n", /its path/],
  ["a line break behind a tag", "alpine:3\n", /its tag/],
  ["a line break behind a digest", `alpine@${digest}\n`, /its digest/],
  ["NUL", "alpine\0", /its path/],
  ["upper case", "Alpine", /its path/],
  ["upper case in a folder", "Team/alpine", /its path/],
  ["upper case behind a registry", "docker.io/Team/alpine", /its path/],
  ["other letters", "älpine", /its path/],
  ["letters that look alike", "аlpine", /its path/],
  ["full-width letters", "ａlpine", /its path/],
  ["an option", "--privileged", /its path/],
  ["a short option", "-v", /its path/],
  ["two slashes", "a//b", /its path/],
  ["a slash in front", "/a", /its path/],
  ["a slash behind", "a/", /its path/],
  ["a path of the host", "/etc/passwd", /its path/],
  ["a way up", "../a", /before its first \//],
  ["dots only", "a/..", /its path/],
  ["two dots", "a..b", /its path/],
  ["three underscores", "a___b", /its path/],
  ["a dot behind", "a.", /its path/],
  ["a colon behind", "a:", /its tag/],
  ["a tag with a dash in front", "a:-b", /its tag/],
  ["a tag that is too long", `a:${"t".repeat(129)}`, /its tag/],
  ["two tags", "a:b:c", /its path|its tag/],
  ["a registry alone", "registry.example/", /its path/],
  ["a registry with a colon and no port", "registry.example:/a", /before its first \//],
  ["a registry with a port that is none", "registry.example:http/a", /before its first \//],
  ["a registry with a port that is too long", "registry.example:123456/a", /before its first \//],
  ["a registry with a dash in front", "-a.example/b", /before its first \//],
  ["a registry with a dot behind", "registry.example./b", /before its first \//],
  ["somebody at a registry", "user@registry.example/b", /its digest/],
  ["a digest that is too short", "a@sha256:abc", /its digest/],
  ["a digest in upper case", `a@${digest.toUpperCase()}`, /its digest/],
  ["a digest of another kind", `a@md5:${"0".repeat(32)}`, /its digest/],
  ["an empty digest", "a@", /its digest/],
  ["two digests", `a@${digest}@${digest}`, /its digest/],
  ["an id", "0123456789abcdef".repeat(4), /it is an id/],
  ["255 letters, to which a folder is added", "a".repeat(255), /more than 255/],
  ["a path that is too long", `registry.example/${"a/".repeat(128)}a`, /more than 255/],
  ["a megabyte", "a".repeat(2 ** 20), /more than 1024/],
  ["an address", "https://registry.example/a", /before its first \//],
  ["docker://", "docker://docker.io/library/alpine", /before its first \//],
  ["docker-archive:", "docker-archive:/tmp/a.tar", /before its first \//],
  ["docker-archive: with a reference", "docker-archive:/tmp/a.tar:localhost/sandgate/default:latest", /before its first \//],
  ["oci:", "oci:/etc", /before its first \//],
  ["oci-archive:", "oci-archive:/tmp/a.tar", /before its first \//],
  ["dir:", "dir:/etc", /before its first \//],
  ["dir: of here", "dir:.", /its tag/],
  ["tarball:", "tarball:/tmp/a.tar", /before its first \//],
  ["tarball: from standard input", "tarball:-", /its tag/],
  ["sif:", "sif:/tmp/a.sif", /before its first \//],
  ["containers-storage:", "containers-storage:[overlay@/var/lib]a", /its tag/],
  ["containers-storage: with a name", "containers-storage:localhost/sandgate/default", /before its first \//],
  ["docker-daemon:", "docker-daemon:a:latest", /its path|its tag/],
  ["ostree:", "ostree:a@/ostree/repo", /its digest/],
];

describe("is no image, and the message says why", () => {
  for (const [what, given, why] of refused) {
    test(what, () => {
      assert.throws(
        () => parseImage(given),
        (error: unknown) => {
          assert.ok(error instanceof SandgateError);
          assert.equal(error.code, "unprocessable");
          assert.match(error.message, /^image must be the name of a container image/);
          assert.match(error.message, why);
          assert.ok(error.message.length < 500, "the message is as long as what it is about");
          assert.doesNotMatch(error.message, /[\n\0]/);
          return true;
        },
      );
    });
  }
});

describe("which image is meant", () => {
  const offered = { defaultImage: "localhost/sandgate/default:latest", localImages: ["localhost/tools:1"] };

  test("the default one by its word and by every spelling of its name", () => {
    for (const text of [defaultImageWord, "localhost/sandgate/default", "localhost/sandgate/default:latest", "LOCALHOST/sandgate/default"]) {
      assert.equal(wantedImage(text, offered), defaultImageWord);
    }
    assert.equal(wantedImage("debian:12", { ...offered, defaultImage: "docker.io/library/debian:12" }), defaultImageWord);
  });

  test("one of this machine only as the operator has named it", () => {
    const wanted = wantedImage("localhost/tools:1", offered);
    assert.ok(wanted !== defaultImageWord && nameOf(wanted) === "localhost/tools:1");
    for (const text of ["localhost/tools", "localhost/tools:2", "localhost/sandgate/default:other", `localhost/tools@${digest}`, "localhost/other"]) {
      assert.throws(() => wantedImage(text, offered), /^SandgateError: image not allowed: localhost\//);
    }
  });
});

test("registries have a host and perhaps a port", () => {
  assert.equal(parseRegistry("Registry.LAN:5000"), "registry.lan:5000");
  for (const text of ["", "a/b", "http://a", "a:", "a:b", "-a", "a b", "*.example"]) assert.equal(parseRegistry(text), undefined, text);
  assert.equal(hostOf("registry.lan:5000"), "registry.lan");
  assert.equal(hostOf("registry.lan"), "registry.lan");
  assert.equal(hostOf("[::1]:5000"), "::1");
  assert.equal(hostOf("[::1]"), "::1");
});

test("ids are 64 digits and nothing else", () => {
  assert.ok(isImageId("0123456789abcdef".repeat(4)));
  for (const text of ["", "abc", digest, "g".repeat(64), "A".repeat(64), `${"a".repeat(64)}\n`]) assert.ok(!isImageId(text));
});
