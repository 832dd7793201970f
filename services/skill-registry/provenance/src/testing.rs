//! A whole Sigstore of its own: an authority, a log of certificates and a log of signatures, so that tests can sign, and
//! can leave out or spoil whatever they like. For tests only, behind the feature `testing`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PublicKeyData as _, SanType, SerialNumber, SigningKey as _, date_time_ymd,
};
use serde_json::{Value, json};
use steward_base::hash::{sha256, sha256_hex};
use steward_skill_scanner::Tree;

/// Who vouches for the identities.
pub const ISSUER: &str = "https://issuer.example";
/// An identity.
pub const SUBJECT: &str = "https://git.example/acme/skills/.ci/release.yml@refs/tags/v1";
/// 1 June 2025, noon: a certificate is good for that day.
pub const NOON: i64 = 1_748_779_200;

const ISSUER_OID: &[u64] = &[1, 3, 6, 1, 4, 1, 57264, 1, 8];
const TIMESTAMPS_OID: &[u64] = &[1, 3, 6, 1, 4, 1, 11129, 2, 4, 2];

/// Bytes as a bundle has them.
pub fn base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// The authority with its two logs.
#[derive(Debug)]
pub struct Authority {
    key: KeyPair,
    params: CertificateParams,
    certificate: Vec<u8>,
    signatures: KeyPair,
    certificates: KeyPair,
}

/// A signer's key with the certificate for it.
#[derive(Debug)]
pub struct Signer {
    key: KeyPair,
    certificate: Vec<u8>,
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// With keys of its own.
    pub fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "authority");
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2040, 1, 1);
        let certificate = params.self_signed(&key).unwrap().der().to_vec();
        Self {
            key,
            params,
            certificate,
            signatures: KeyPair::generate().unwrap(),
            certificates: KeyPair::generate().unwrap(),
        }
    }

    /// Another authority beside the same logs.
    pub fn beside(other: &Self) -> Self {
        let copy = |key: &KeyPair| KeyPair::try_from(key.serialize_der()).unwrap();
        Self {
            signatures: copy(&other.signatures),
            certificates: copy(&other.certificates),
            ..Self::new()
        }
    }

    /// What an operator would lay down as `trusted_root.json`.
    pub fn root(&self) -> String {
        let log = |key: &KeyPair| {
            let bytes = key.subject_public_key_info();
            json!([{
                "baseUrl": "https://log.example",
                "hashAlgorithm": "SHA2_256",
                "publicKey": {"rawBytes": base64(&bytes), "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                    "validFor": {"start": "2020-01-01T00:00:00Z"}},
                "logId": {"keyId": base64(sha256(&bytes))},
            }])
        };
        json!({
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": log(&self.signatures),
            "certificateAuthorities": [{
                "subject": {"organization": "example", "commonName": "authority"},
                "uri": "https://authority.example",
                "certChain": {"certificates": [{"rawBytes": base64(&self.certificate)}]},
                "validFor": {"start": "2020-01-01T00:00:00Z"},
            }],
            "ctlogs": log(&self.certificates),
            "timestampAuthorities": [],
        })
        .to_string()
    }

    /// A signer with a certificate in the name of `subject`.
    pub fn signer(&self, subject: &str) -> Signer {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.serial_number = Some(SerialNumber::from(7_u64));
        params.subject_alt_names = vec![SanType::URI(subject.try_into().unwrap())];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
        params.not_before = date_time_ymd(2025, 6, 1);
        params.not_after = date_time_ymd(2025, 6, 2);
        let issuer_text = [&[0x0c, u8::try_from(ISSUER.len()).unwrap()], ISSUER.as_bytes()].concat();
        params.custom_extensions = vec![CustomExtension::from_oid_content(ISSUER_OID, issuer_text)];
        let issuer = Issuer::from_params(&self.params, &self.key);
        let before = params.signed_by(&key, &issuer).unwrap();
        let extension = self.logged(to_be_signed(before.der()));
        params.custom_extensions.push(extension);
        let certificate = params.signed_by(&key, &issuer).unwrap().der().to_vec();
        Signer { key, certificate }
    }

    /// The log's word that it has the certificate, as an extension of it.
    fn logged(&self, to_be_signed: &[u8]) -> CustomExtension {
        let time = u64::try_from(NOON * 1000).unwrap().to_be_bytes();
        let issuer = sha256(&self.key.subject_public_key_info());
        let length = u32::try_from(to_be_signed.len()).unwrap().to_be_bytes();
        let entry = [
            &[0, 0][..],
            &time,
            &[0, 1],
            &issuer,
            &length[1..],
            to_be_signed,
            &[0, 0],
        ]
        .concat();
        let signature = self.certificates.sign(&entry).unwrap();
        let log = sha256(&self.certificates.subject_public_key_info());
        let timestamp = [&[0][..], &log, &time, &[0, 0], &[4, 3], &counted(&signature)].concat();
        let list = counted(&counted(&timestamp));
        let length = u8::try_from(list.len()).unwrap();
        let head = if length < 128 {
            vec![4, length]
        } else {
            vec![4, 0x81, length]
        };
        CustomExtension::from_oid_content(TIMESTAMPS_OID, [head, list].concat())
    }

    /// The OMS signature of a tree as it stands, by [`SUBJECT`], at [`NOON`].
    pub fn sign(&self, tree: &Tree) -> String {
        let texts: Vec<(&str, &[u8])> = tree.iter().map(|(path, file)| (path, &*file.bytes)).collect();
        let statement = statement(&texts).to_string();
        let key = self.signer(SUBJECT);
        self.envelope(&key, statement.as_bytes(), NOON).to_string()
    }

    /// A bundle with an envelope around a statement.
    pub fn envelope(&self, signer: &Signer, statement: &[u8], at: i64) -> Value {
        let kind = "application/vnd.in-toto+json";
        let head = format!("DSSEv1 {} {kind} {} ", kind.len(), statement.len());
        let signature = signer.key.sign(&[head.as_bytes(), statement].concat()).unwrap();
        let hash = json!({"algorithm": "sha256", "value": sha256_hex(statement)});
        let body = json!({"apiVersion": "0.0.1", "kind": "dsse", "spec": {
            "envelopeHash": hash, "payloadHash": hash,
            "signatures": [{"signature": base64(&signature), "verifier": base64(signer.pem())}],
        }});
        let mut bundle = self.bundle(signer, "dsse", &body, at);
        bundle["dsseEnvelope"] = json!({
            "payload": base64(statement), "payloadType": kind, "signatures": [{"sig": base64(&signature)}],
        });
        bundle
    }

    /// A bundle with a signature of a message.
    pub fn message(&self, signer: &Signer, message: &[u8], at: i64) -> Value {
        let signature = signer.key.sign(message).unwrap();
        let body = json!({"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": {
            "data": {"hash": {"algorithm": "sha256", "value": sha256_hex(message)}},
            "signature": {"content": base64(&signature), "publicKey": {"content": base64(signer.pem())}},
        }});
        let mut bundle = self.bundle(signer, "hashedrekord", &body, at);
        bundle["messageSignature"] = json!({
            "messageDigest": {"algorithm": "SHA2_256", "digest": base64(sha256(message))},
            "signature": base64(&signature),
        });
        bundle
    }

    fn bundle(&self, signer: &Signer, kind: &str, body: &Value, at: i64) -> Value {
        let body = body.to_string();
        let log = sha256(&self.signatures.subject_public_key_info());
        let promised = format!(
            r#"{{"body":"{}","integratedTime":{at},"logID":"{}","logIndex":0}}"#,
            base64(&body),
            hex::encode(log)
        );
        let leaf = sha256(&[&[0], body.as_bytes()].concat());
        let note = format!("log.example\n1\n{}\n", base64(leaf));
        let checkpoint = [&log[..4], &self.signatures.sign(note.as_bytes()).unwrap()].concat();
        json!({
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": {
                "certificate": {"rawBytes": base64(&signer.certificate)},
                "tlogEntries": [{
                    "logIndex": "0",
                    "logId": {"keyId": base64(log)},
                    "kindVersion": {"kind": kind, "version": "0.0.1"},
                    "integratedTime": at.to_string(),
                    "inclusionPromise": {
                        "signedEntryTimestamp": base64(self.signatures.sign(promised.as_bytes()).unwrap()),
                    },
                    "inclusionProof": {
                        "logIndex": "0", "rootHash": base64(leaf), "treeSize": "1", "hashes": [],
                        "checkpoint": {"envelope": format!("{note}\n\u{2014} log.example {}\n", base64(checkpoint))},
                    },
                    "canonicalizedBody": base64(&body),
                }],
            },
        })
    }
}

impl Signer {
    fn pem(&self) -> String {
        let text = base64(&self.certificate);
        let lines: Vec<&str> = text
            .as_bytes()
            .chunks(64)
            .map(|line| std::str::from_utf8(line).unwrap())
            .collect();
        format!(
            "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
            lines.join("\n")
        )
    }
}

fn counted(bytes: &[u8]) -> Vec<u8> {
    [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
}

/// The part of a certificate that is signed: the first element of the sequence.
fn to_be_signed(certificate: &[u8]) -> &[u8] {
    let (_, inside) = element(certificate);
    let (length, _) = element(inside);
    &inside[..length]
}

/// How long the first element is, and its content.
fn element(bytes: &[u8]) -> (usize, &[u8]) {
    let (head, length) = match bytes[1] {
        short @ ..=0x80 => (2, usize::from(short)),
        0x81 => (3, usize::from(bytes[2])),
        _ => (4, usize::from(bytes[2]) << 8 | usize::from(bytes[3])),
    };
    (head + length, &bytes[head..head + length])
}

/// The statement of an OMS signature of these files, in this order.
pub fn statement<T: AsRef<[u8]>>(files: &[(&str, T)]) -> Value {
    let mut sum = Vec::new();
    let resources: Vec<Value> = files
        .iter()
        .map(|(name, content)| {
            sum.extend(sha256(content.as_ref()));
            json!({"name": name, "algorithm": "sha256", "digest": sha256_hex(content.as_ref())})
        })
        .collect();
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "tidy", "digest": {"sha256": sha256_hex(&sum)}}],
        "predicateType": "https://model_signing/signature/v1.0",
        "predicate": {
            "serialization": {"method": "files", "hash_type": "sha256", "allow_symlinks": false,
                "ignore_paths": ["skill.oms.sig", ".gitignore"]},
            "resources": resources,
        },
    })
}
