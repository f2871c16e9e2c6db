import { createHash, createPrivateKey, generateKeyPairSync, randomBytes, sign, X509Certificate } from "node:crypto";
import type { KeyObject } from "node:crypto";
import { isIP } from "node:net";
import { bits, explicit, identifier, implicit, instant, integer, octets, sequence, set, truth, utf8 } from "./der.ts";
import type { Der } from "./der.ts";

/**
 * Certificates for the secure profile and for tests: an authority of a deployment's own, and what it vouches for (RFC 5280,
 * ECDSA on P-256 with SHA-256). Node makes keys and signatures, but no certificates, and neither openssl nor a package can
 * be counted on where a deployment is set up. A platform with an authority of its own needs none of this.
 */
export interface Certificate {
  /** PEM. */
  readonly certificate: string;
  /** PEM, PKCS #8. Whoever has it is what the certificate says. */
  readonly key: string;
}

/** From when on and how long a certificate is good. */
export interface Validity {
  /** Epoch ms. */
  readonly from: number;
  readonly days: number;
}

export interface CertificateRequest extends Validity {
  readonly commonName: string;
  /** Host names and IP addresses that a server answers at. */
  readonly hosts: readonly string[];
  /** `peer`: a server that is also a client, since NATS servers show each other the same certificate. */
  readonly use: "server" | "client" | "peer";
}

const oid = {
  commonName: "2.5.4.3",
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
  subjectKeyIdentifier: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAltName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  authorityKeyIdentifier: "2.5.29.35",
  extKeyUsage: "2.5.29.37",
  serverAuth: "1.3.6.1.5.5.7.3.1",
  clientAuth: "1.3.6.1.5.5.7.3.2",
} as const;

const usesOf = {
  server: [oid.serverAuth],
  client: [oid.clientAuth],
  peer: [oid.serverAuth, oid.clientAuth],
} as const;

const DAY_MS = 86_400_000;
/** Clocks differ: a certificate is good a little before it is made. */
const EARLIER_MS = 300_000;

const nameOf = (commonName: string): Der => sequence(set(sequence(identifier(oid.commonName), utf8(commonName))));
const algorithm = sequence(identifier(oid.ecdsaWithSha256));

const extension = (id: string, value: Uint8Array, critical = false): Der =>
  sequence(identifier(id), ...(critical ? [truth()] : []), octets(value));

const spkiOf = (key: KeyObject): Buffer => key.export({ type: "spki", format: "der" });
const keyIdentifier = (publicKey: KeyObject): Buffer => createHash("sha1").update(spkiOf(publicKey)).digest();

function address(host: string): Der {
  switch (isIP(host)) {
    case 4:
      return implicit(7, Uint8Array.from(host.split(".").map(Number)));
    case 6:
      return implicit(7, ipv6Bytes(host));
    default:
      return implicit(2, Buffer.from(host, "ascii"));
  }
}

function ipv6Bytes(host: string): Buffer {
  // The URL parser writes every address in one form: hexadecimal groups, at most one gap.
  const [head = "", tail] = new URL(`http://[${host}]`).hostname.slice(1, -1).split("::");
  const groups = (text: string): string[] => (text === "" ? [] : text.split(":"));
  const left = groups(head);
  const right = groups(tail ?? "");
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => "0");
  return Buffer.from([...left, ...zeros, ...right].map((group) => group.padStart(4, "0")).join(""), "hex");
}

const pem = (bytes: Buffer): string =>
  `-----BEGIN CERTIFICATE-----\n${(bytes.toString("base64").match(/.{1,64}/g) ?? []).join("\n")}\n-----END CERTIFICATE-----\n`;

interface Contents extends Validity {
  readonly issuer: string;
  readonly subject: string;
  readonly publicKey: KeyObject;
  readonly extensions: readonly Der[];
}

function issue(contents: Contents, issuerKey: KeyObject): string {
  const { extensions, days, from, issuer, publicKey, subject } = contents;
  const body = sequence(
    explicit(0, integer(Uint8Array.of(2))),
    integer(randomBytes(16)),
    algorithm,
    nameOf(issuer),
    sequence(instant(from - EARLIER_MS), instant(from + days * DAY_MS)),
    nameOf(subject),
    spkiOf(publicKey),
    explicit(3, sequence(...extensions)),
  );
  return pem(sequence(body, algorithm, bits(sign("sha256", body, issuerKey))));
}

const keyPem = (key: KeyObject): string => String(key.export({ type: "pkcs8", format: "pem" }));

/** An authority that vouches for servers and clients, and for no further authorities. */
export function makeCertificateAuthority(options: Validity & { readonly commonName: string }): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { commonName, days, from } = options;
  const extensions = [
    extension(oid.basicConstraints, sequence(truth(), integer(Uint8Array.of(0))), true),
    // keyCertSign and cRLSign.
    extension(oid.keyUsage, bits(Uint8Array.of(0x06), 1), true),
    extension(oid.subjectKeyIdentifier, octets(keyIdentifier(publicKey))),
  ];
  const certificate = issue({ issuer: commonName, subject: commonName, publicKey, extensions, days, from }, privateKey);
  return { certificate, key: keyPem(privateKey) };
}

/** A certificate that the authority vouches for, with a new key. */
export function issueCertificate(authority: Certificate, request: CertificateRequest): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const issuer = new X509Certificate(authority.certificate);
  const uses = usesOf[request.use];
  const extensions = [
    extension(oid.basicConstraints, sequence(), true),
    // digitalSignature.
    extension(oid.keyUsage, bits(Uint8Array.of(0x80), 7), true),
    extension(oid.extKeyUsage, sequence(...uses.map(identifier))),
    extension(oid.subjectKeyIdentifier, octets(keyIdentifier(publicKey))),
    extension(oid.authorityKeyIdentifier, sequence(implicit(0, keyIdentifier(issuer.publicKey)))),
    ...(request.hosts.length === 0 ? [] : [extension(oid.subjectAltName, sequence(...request.hosts.map(address)))]),
  ];
  const certificate = issue(
    {
      issuer: issuer.subject.replace(/^CN=/, ""),
      subject: request.commonName,
      publicKey,
      extensions,
      days: request.days,
      from: request.from,
    },
    createPrivateKey(authority.key),
  );
  return { certificate, key: keyPem(privateKey) };
}
