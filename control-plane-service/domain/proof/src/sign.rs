//! Signing and checking of roots. The private key stays with whoever implements [`Signer`].

use ed25519_dalek::VerifyingKey;

/// What a root is signed for: no signature made for anything else is one of a proof.
const PURPOSE: &[u8] = b"platform-core proof root v1\n";

/// An Ed25519 public key, 32 bytes.
pub type PublicKey = [u8; 32];

/// Holds the platform's proof key.
pub trait Signer {
    fn public_key(&self) -> PublicKey;
    /// The Ed25519 signature of `message`.
    fn sign(&self, message: &[u8]) -> [u8; 64];
}

/// The bytes that are signed for a root.
pub(crate) fn message(root: &[u8]) -> Vec<u8> {
    [PURPOSE, root].concat()
}

/// Whether `signature` over `root` was made with the private half of `key`.
pub(crate) fn holds(key: &PublicKey, root: &[u8], signature: &str) -> bool {
    let mut bytes = [0; 64];
    if hex::decode_to_slice(signature, &mut bytes).is_err() {
        return false;
    }
    let signature = ed25519_dalek::Signature::from_bytes(&bytes);
    VerifyingKey::from_bytes(key).is_ok_and(|key| key.verify_strict(&message(root), &signature).is_ok())
}
