/** A container registry over HTTPS on 127.0.0.1 that serves small images made up by the test: the pull half of the distribution API. */
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { pack } from "tar-stream";
import { run } from "../../systemd/base/run.ts";
import { testPort } from "./ports.ts";

const types = {
  manifest: "application/vnd.oci.image.manifest.v1+json",
  config: "application/vnd.oci.image.config.v1+json",
  layer: "application/vnd.oci.image.layer.v1.tar+gzip",
} as const;
const architecture = { x64: "amd64", arm64: "arm64" }[process.arch as string] ?? process.arch;

interface Making {
  readonly tag?: string;
  readonly bytes?: number;
  readonly config?: object;
  /** Where links lead that the layer has, by their names; in the place of a folder of it as well. */
  readonly links?: Readonly<Record<string, string>>;
  /** Of the manifest. */
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface MadeImage {
  /** Without registry: `path:tag`. */
  readonly name: string;
  /** Podman's id: the digest of the configuration. */
  readonly id: string;
  /** Of the manifest, `sha256:…`. */
  readonly digest: string;
}

export class TestRegistry {
  /** `METHOD path` of every request. */
  readonly requests: string[] = [];
  /** A file with the certificate by which clients know this server: SSL_CERT_FILE. */
  readonly certificate: string;
  readonly port: number;
  readonly #dir: string;
  readonly #server: Server;
  readonly #blobs = new Map<string, Buffer>();
  readonly #manifests = new Map<string, Buffer>();
  #redirect: string | undefined;
  #held: Promise<void> | undefined;

  private constructor(dir: string, port: number) {
    this.#dir = dir;
    this.port = port;
    this.certificate = join(dir, "cert.pem");
    this.#server = createServer({ key: readFileSync(join(dir, "key.pem")), cert: readFileSync(this.certificate) }, (request, response) =>
      this.#answer(request, response),
    );
  }

  /** @param names under which it is known beside 127.0.0.1 */
  static async start(names: readonly string[] = []): Promise<TestRegistry> {
    const dir = mkdtempSync(join(tmpdir(), "sandgate-registry-"));
    const known = ["IP:127.0.0.1", ...names.map((name) => `DNS:${name}`)].join(",");
    const certificate = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=test"];
    await run(["openssl", "req", ...certificate, "-addext", `subjectAltName=${known}`, "-keyout", join(dir, "key.pem"), "-out", join(dir, "cert.pem")]);
    // The parts run as another user.
    await run(["chmod", "-R", "a+rX", dir]);
    const registry = new TestRegistry(dir, await testPort());
    await new Promise<void>((resolve) => registry.#server.listen(registry.port, "127.0.0.1", resolve));
    return registry;
  }

  get host(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Serves an image with one layer of as many random bytes, and whatever its configuration is to say. */
  async add(path: string, { tag = "latest", bytes = 1_000, config = {}, links = {}, annotations = {} }: Making = {}): Promise<MadeImage> {
    const layer = await layerOf(bytes, links);
    const zipped = gzipSync(layer, { level: 1 });
    const rootfs = { type: "layers", diff_ids: [digestOf(layer)] };
    const configuration = Buffer.from(JSON.stringify({ architecture, os: "linux", config, rootfs }));
    const entry = (mediaType: string, blob: Buffer) => ({ mediaType, size: blob.length, digest: this.#keep(blob) });
    const manifest = Buffer.from(
      JSON.stringify({
        schemaVersion: 2,
        mediaType: types.manifest,
        config: entry(types.config, configuration),
        layers: [entry(types.layer, zipped)],
        annotations,
      }),
    );
    for (const version of [tag, digestOf(manifest)]) this.#manifests.set(`${path}/${version}`, manifest);
    return { name: `${path}:${tag}`, id: digestOf(configuration).slice("sha256:".length), digest: digestOf(manifest) };
  }

  /** Redirects requests for blobs to the same path of another server. */
  redirectBlobs(origin: string | undefined): void {
    this.#redirect = origin;
  }

  /** Holds back requests for blobs until the returned function is called. */
  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held = promise;
    return () => {
      this.#held = undefined;
      resolve();
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
    rmSync(this.#dir, { recursive: true, force: true });
  }

  #keep(blob: Buffer): string {
    this.#blobs.set(digestOf(blob), blob);
    return digestOf(blob);
  }

  #answer({ method = "", url = "" }: IncomingMessage, response: ServerResponse): void {
    this.requests.push(`${method} ${url}`);
    const send = (status: number, type: string, body: Buffer, headers: object = {}): void => {
      response.writeHead(status, { "content-type": type, "content-length": body.length, ...headers });
      response.end(method === "HEAD" ? undefined : body);
    };
    if (url === "/v2/") return send(200, "application/json", Buffer.from("{}"));
    const [, path = "", kind, reference = ""] = /^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/.exec(url) ?? [];
    const found = kind === "manifests" ? this.#manifests.get(`${path}/${reference}`) : this.#blobs.get(reference);
    if (!found) {
      const code = kind === "manifests" ? "MANIFEST_UNKNOWN" : "BLOB_UNKNOWN";
      return send(404, "application/json", Buffer.from(JSON.stringify({ errors: [{ code, message: "unknown" }] })));
    }
    if (kind === "manifests") return send(200, types.manifest, found, { "docker-content-digest": digestOf(found) });
    if (this.#redirect) return void response.writeHead(307, { location: this.#redirect + url }).end();
    void Promise.resolve(this.#held).then(() => send(200, "application/octet-stream", found));
  }
}

const digestOf = (bytes: Buffer): string => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

async function layerOf(bytes: number, links: Readonly<Record<string, string>>): Promise<Buffer> {
  const tar = pack();
  for (const name of ["etc", "proc", "sys", "dev", "run", "tmp", "root"]) if (!(name in links)) tar.entry({ name, type: "directory", mode: 0o755 });
  for (const [name, linkname] of Object.entries(links)) tar.entry({ name, type: "symlink", linkname });
  tar.entry({ name: "etc/passwd" }, "root:x:0:0:root:/root:/bin/sh\n");
  tar.entry({ name: "etc/group" }, "root:x:0:\n");
  tar.entry({ name: "etc/content" }, randomBytes(bytes));
  tar.finalize();
  return buffer(tar);
}
