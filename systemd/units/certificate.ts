/**
 * The certificate with which gateways speak HTTPS. Its files can be for root alone: gateways get a copy, and a new one after each
 * change, which they take up without a restart. The credentials of a service stay as they were at its start.
 */
import { createHash } from "node:crypto";
import { chown, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { createSecureContext } from "node:tls";
import { type Config, ConfigError, settings } from "../../shared/config.ts";
import { builtName } from "../../shared/programs.mjs";
import { pause } from "../../shared/waiting.ts";
import { messageOf } from "../base/failure.ts";
import type { Account } from "../base/instance.ts";
import { run, succeeds } from "../base/run.ts";
import { replaceFile } from "../base/write-file.ts";
import { givenDir } from "./given.ts";
import { programDir } from "./places.ts";

const copies = { certificate: join(givenDir, "tls/certificate.pem"), key: join(givenDir, "tls/key.pem") };
const unit = "sandgate-certificate";
/** The two files are replaced one after the other. */
const tries = { atStart: 5, afterChange: 30 };
const pauseMs = 1_000;

type Named = Pick<Config, "tlsCertificate" | "tlsKey">;

/**
 * Copies the files, and has systemd do that after each change.
 *
 * @returns the settings that name the copies; none without HTTPS
 * @throws {ConfigError} if the files cannot be read or do not belong together
 */
export async function giveCertificate(config: Named, gateway: Account): Promise<Record<string, string>> {
  await forgetCertificate();
  // One without the other is for the gateway to complain of.
  if (!config.tlsCertificate || !config.tlsKey) return {};
  await copyCertificate(config, gateway, tries.atStart).catch((error: unknown) => {
    throw new ConfigError(`${settings.tlsCertificate.name} and ${settings.tlsKey.name} cannot be used: ${messageOf(error)}`);
  });
  const watched = [config.tlsCertificate, config.tlsKey].map((file) => `--path-property=PathChanged=${file.replaceAll("%", "%%")}`);
  // Tools may touch files often.
  const service = ["--service-type=oneshot", "--collect", "--property=StartLimitIntervalSec=0", "--property=SyslogIdentifier=sandgate-setup"];
  const program = [join(programDir, "node_modules/.bin/node"), join(programDir, "build", builtName("systemd/units/setup.ts")), "--certificate"];
  await run(["systemd-run", "--quiet", `--unit=${unit}`, ...watched, ...service, "--", ...program]);
  return { [settings.tlsCertificate.name]: copies.certificate, [settings.tlsKey.name]: copies.key };
}

/** Looks for changes no longer, nor at one that was seen. */
export const forgetCertificate = (): Promise<boolean> => succeeds(["systemctl", "stop", `${unit}.path`, `${unit}.service`], { cwd: "/" });

/** @throws {Error} if the files cannot be read or do not belong together, which may be so while they are being replaced */
export async function copyCertificate({ tlsCertificate, tlsKey }: Named, { gid }: Account, triesMax = tries.afterChange): Promise<void> {
  const [cert, key] = await settledPair(tlsCertificate, tlsKey, triesMax);
  const folder = join(givenDir, "tls");
  await mkdir(folder, { recursive: true, mode: 0o750 });
  await chown(folder, 0, gid);
  const ownership = { mode: 0o640, uid: 0, gid };
  await replaceFile(copies.key, key, ownership);
  await replaceFile(copies.certificate, cert, ownership);
}

/** What is in the files once they belong together and change no more. */
async function settledPair(certificate: string, keyFile: string, triesMax: number): Promise<[Buffer, Buffer]> {
  let former = "";
  for (let left = triesMax; ; left--) {
    try {
      const [cert, key] = [await readFile(certificate), await readFile(keyFile)];
      createSecureContext({ cert, key });
      const version = createHash("sha256").update(cert).update(key).digest("hex");
      if (version === former) return [cert, key];
      former = version;
    } catch (error) {
      if (left <= 1) throw error;
    }
    await pause(pauseMs);
  }
}
