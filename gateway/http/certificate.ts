/** The certificate with which a gateway speaks HTTPS itself, from files that others renew. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { type Config, ConfigError, settings } from "../../shared/config.ts";
import { every } from "../../shared/util/background.ts";
import type { Logger } from "../../shared/util/log.ts";

const lookMs = 5_000;

/** Paths of PEM files. */
export interface CertificateFiles {
  /** The certificate, followed by those between it and its authority. */
  readonly certificate: string;
  readonly key: string;
}

/** @returns undefined for plain HTTP @throws {ConfigError} if one file is missing, cannot be read, or does not belong to the other */
export function certificateFiles({ tlsCertificate: certificate, tlsKey: key }: Pick<Config, "tlsCertificate" | "tlsKey">): CertificateFiles | undefined {
  if (!certificate && !key) return undefined;
  const names = `${settings.tlsCertificate.name} and ${settings.tlsKey.name}`;
  if (!certificate || !key) throw new ConfigError(`${names} need each other`);
  const files = { certificate, key };
  try {
    versionOf(files);
  } catch (error) {
    throw new ConfigError(`${names} cannot be used: ${error instanceof Error ? error.message : error}`);
  }
  return files;
}

/** Names what is in the files. @throws {Error} if they cannot be read or do not belong together, as while they are being replaced */
function versionOf({ certificate, key }: CertificateFiles): string {
  const [cert, privateKey] = [certificate, key].map((file) => readFileSync(file)) as [Buffer, Buffer];
  createSecureContext({ cert, key: privateKey });
  return createHash("sha256").update(cert).update(privateKey).digest("hex");
}

/** Calls back after each change of the files. Returns a function that stops watching. Files that cannot be used are logged, and the former ones stay in use. */
export function watchCertificate(files: CertificateFiles, log: Logger, renew: () => Promise<void>): () => void {
  let version = versionOf(files);
  const look = async (): Promise<void> => {
    const found = versionOf(files);
    if (found === version) return;
    await renew();
    version = found;
    log.info({ event: "certificate_renewed", file: files.certificate }, "new connections get the new certificate");
  };
  // Compared rather than watched: tools replace files, folders and links in many ways.
  const timer = every(lookMs, log, "the certificate could not be renewed; the former one stays in use", look);
  return () => clearInterval(timer);
}
