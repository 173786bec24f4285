//! Ed25519 keys: made here, kept in a file that only its owner can read, published as public key.

use core::fmt;
use core::str::FromStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey, EncodePrivateKey, KeypairBytes};
use ed25519_dalek::{Signer as _, SigningKey, VerifyingKey};
use kernel::Sha256Digest;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a key cannot be had. Never carries key material.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read or written.
    #[error("the key file {path} cannot be used")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Others than the owner may read the file.
    #[error("the key file {path} can be read by others (mode {mode:o}); make it 0600")]
    LoosePermissions {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The text is no PKCS#8 PEM of an Ed25519 key.
    #[error("not an Ed25519 private key in PKCS#8 PEM form")]
    NotAPrivateKey,
    /// The text is no public key.
    #[error("not an Ed25519 public key: 32 bytes as base64url without padding")]
    NotAPublicKey,
    /// The text is no signature.
    #[error("not an Ed25519 signature: 64 bytes as base64url without padding")]
    NotASignature,
}

/// The name of a key in a token's header: the first 16 hex digits of the SHA-256 of the public key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyId(String);

impl KeyId {
    pub(crate) fn from_header(text: &str) -> Self {
        Self(text.chars().take(64).collect())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A private key. `Debug` shows its public half's id only.
#[derive(Clone)]
pub struct PrivateKey(SigningKey);

impl PrivateKey {
    /// A fresh key from the system's randomness.
    #[must_use]
    pub fn generate() -> Self {
        Self(SigningKey::from_bytes(&rand::random()))
    }

    /// Reads PKCS#8 PEM.
    ///
    /// # Errors
    /// [`KeyError::NotAPrivateKey`].
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        SigningKey::from_pkcs8_pem(pem)
            .map(Self)
            .map_err(|_| KeyError::NotAPrivateKey)
    }

    /// Reads a PEM file that nobody but its owner may read.
    ///
    /// # Errors
    /// The file is missing, readable by others, or holds no key.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        let fault = |source| KeyError::File {
            path: path.to_owned(),
            source,
        };
        let mut file = File::open(path).map_err(fault)?;
        let mode = file.metadata().map_err(fault)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(KeyError::LoosePermissions {
                path: path.to_owned(),
                mode,
            });
        }
        let mut pem = String::new();
        file.read_to_string(&mut pem).map_err(fault)?;
        Self::from_pem(&pem)
    }

    /// Writes the key as PEM to a new file with mode 0600. An existing file is never replaced:
    /// tokens and proofs hang on it.
    ///
    /// # Errors
    /// The file exists or cannot be written.
    pub fn save_new(&self, path: &Path) -> Result<(), KeyError> {
        let fault = |source| KeyError::File {
            path: path.to_owned(),
            source,
        };
        // Written aside and linked into place, so that no reader ever sees half a key.
        let aside = path.with_extension(format!("{}.new", uuid::Uuid::new_v4()));
        let written = self
            .write_file(&aside)
            .and_then(|()| std::fs::hard_link(&aside, path))
            .map_err(fault);
        // Best effort: a left-over copy has mode 0600 like the key itself.
        let _ = std::fs::remove_file(&aside);
        written
    }

    /// The key in `path`, made there first when the file does not exist. Safe when several
    /// processes start at once: all end with the same key.
    ///
    /// # Errors
    /// As [`PrivateKey::load`] and [`PrivateKey::save_new`].
    pub fn load_or_generate(path: &Path) -> Result<Self, KeyError> {
        if !path.exists() {
            match Self::generate().save_new(path) {
                Err(KeyError::File { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {}
                outcome => outcome?,
            }
        }
        Self::load(path)
    }

    fn write_file(&self, path: &Path) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        // The version 1 form without the public half: every tool reads it.
        let pair = KeypairBytes {
            secret_key: self.0.to_bytes(),
            public_key: None,
        };
        let pem = pair.to_pkcs8_pem(LineEnding::LF).map_err(io::Error::other)?;
        file.write_all(pem.as_bytes())?;
        file.sync_all()
    }

    /// The public half.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Signs `message` itself (not a token): for the root of a proof.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> Signature {
        Signature(self.0.sign(message))
    }

    pub(crate) fn encoding_key(&self) -> Result<jsonwebtoken::EncodingKey, KeyError> {
        let der = self.0.to_pkcs8_der().map_err(|_| KeyError::NotAPrivateKey)?;
        Ok(jsonwebtoken::EncodingKey::from_ed_der(der.as_bytes()))
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey({})", self.public_key().id())
    }
}

/// A public key. As text: 32 bytes in base64url without padding.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// The id that tokens name it by.
    #[must_use]
    pub fn id(&self) -> KeyId {
        KeyId(Sha256Digest::of(self.0.as_bytes()).to_hex()[..16].to_owned())
    }

    /// The 32 bytes of the key.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// Whether `signature` was made over `message` by the private half.
    #[must_use]
    pub fn verify(&self, message: &[u8], signature: &Signature) -> bool {
        self.0.verify_strict(message, &signature.0).is_ok()
    }

    pub(crate) fn decoding_key(&self) -> jsonwebtoken::DecodingKey {
        jsonwebtoken::DecodingKey::from_ed_der(self.0.as_bytes())
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0.as_bytes()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; 32];
        decode_exact(text.trim(), &mut bytes).ok_or(KeyError::NotAPublicKey)?;
        VerifyingKey::from_bytes(&bytes)
            .map(Self)
            .map_err(|_| KeyError::NotAPublicKey)
    }
}

impl Serialize for PublicKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PublicKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// A detached Ed25519 signature. As text: 64 bytes in base64url without padding.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature(ed25519_dalek::Signature);

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0.to_bytes()))
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({self})")
    }
}

impl Signature {
    /// The 64 bytes of the signature.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 64] {
        self.0.to_bytes()
    }
}

impl FromStr for Signature {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; 64];
        decode_exact(text.trim(), &mut bytes).ok_or(KeyError::NotASignature)?;
        Ok(Self(ed25519_dalek::Signature::from_bytes(&bytes)))
    }
}

fn decode_exact(text: &str, into: &mut [u8]) -> Option<()> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    (bytes.len() == into.len()).then(|| into.copy_from_slice(&bytes))
}
